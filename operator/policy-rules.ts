// The rules that `operator auth policy create` and `update` are given: a preset, JSON, or a file. They are checked with
// the signer's own schema, so that a mistake is named before anything is sent.

import { readFileSync } from 'node:fs';
import { bounded, renderPlace } from '../common/command-line/text.ts';
import { errorCode } from '../common/formats/error-code.ts';
import { explainIssue } from '../common/formats/issues.ts';
import { NOT_JSON, parseStrictJson } from '../common/formats/strict-json.ts';
import { parseStrictYaml } from '../common/formats/yaml.ts';
import { type Policy, policyRulesSchema } from '../signer/api/policy.ts';
import { UsageFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';
import { type Payments, PRESET_NAMES, PRESETS, validatorClientRules } from './policy-presets.ts';

const MAX_PROBLEM_CHARACTERS = 800;
const YAML_FILE = /\.ya?ml$/i;

export function rulesOf(given: {
  readonly rules?: string | undefined;
  readonly preset?: string | undefined;
  readonly 'fee-recipient'?: readonly string[] | undefined;
  readonly 'max-gas-limit'?: string | undefined;
  readonly builder?: readonly string[] | undefined;
}): Policy['rules'] {
  const { rules, preset } = given;
  if ((rules === undefined) === (preset === undefined)) {
    throw new UsageFailure(`give one of --rules and --preset (${PRESET_NAMES.join(', ')})`);
  }
  const payments = paymentsOf(given['fee-recipient'], given['max-gas-limit'], given.builder);
  if (payments !== undefined && preset !== 'validator-client') {
    throw new UsageFailure('--fee-recipient, --max-gas-limit and --builder go with --preset validator-client');
  }
  if (payments !== undefined) return checked(validatorClientRules(payments), '--preset validator-client');
  if (rules !== undefined) return readRules(rules);
  const name = PRESET_NAMES.find((known) => known === preset);
  if (name === undefined) throw new Error('the description lists the presets');
  return PRESETS[name].map((rule) => rule);
}

const INLINE = 'write a list of rules, as [{"effect":"allow","scopes":["sign"]}], or @FILE for a file that holds one';

function readRules(written: string): Policy['rules'] {
  const value = written.startsWith('@') ? readFile(written.slice(1)) : readJson(Buffer.from(written), INLINE);
  return checked(listIn(value), '--rules');
}

function paymentsOf(
  feeRecipients: readonly string[] = [],
  gasLimit: string | undefined = undefined,
  builders: readonly string[] = [],
): Payments | undefined {
  if (feeRecipients.length === 0 && gasLimit === undefined && builders.length === 0) return undefined;
  if (gasLimit !== undefined && !/^[1-9][0-9]{0,15}$/.test(gasLimit)) {
    throw new UsageFailure('--max-gas-limit is a whole number, such as 60000000');
  }
  return { feeRecipients, maxGasLimit: gasLimit === undefined ? undefined : Number(gasLimit), builders };
}

function checked(rules: unknown, origin: string): Policy['rules'] {
  const parsed = policyRulesSchema.safeParse({ rules }, { error: explainIssue });
  if (parsed.success) return parsed.data.rules;
  const [issue] = parsed.error.issues;
  const place = renderPlace(issue?.path ?? []);
  throw new UsageFailure(bounded(`${origin}: ${place}: ${issue?.message}`, MAX_PROBLEM_CHARACTERS));
}

/** The list itself, or an object that has it and nothing else, as the Auth API takes it. */
function listIn(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const names = Object.keys(value);
  if (names.length === 1 && 'rules' in value) return value.rules;
  throw new UsageFailure(
    '--rules is a list of rules, or an object with the member rules alone',
    'of a whole policy take the list: jq .rules FILE',
  );
}

function readFile(path: string): unknown {
  const bytes = read(path);
  if (!YAML_FILE.test(path)) return readJson(bytes, 'a file with rules in YAML has a name that ends in .yaml');
  const document = parseStrictYaml(bytes.toString('utf8'));
  if (!('problems' in document)) return document.value;
  const [first] = document.problems;
  throw new UsageFailure(`--rules: ${bounded(path, MAX_PROBLEM_CHARACTERS)} line ${first?.line}: ${first?.problem}`);
}

function readJson(bytes: Buffer, advice?: string): unknown {
  const json = parseStrictJson(bytes);
  if (json.kind !== 'refused') return json.value;
  const problem = `--rules: ${json.hint.replace('the body', 'the text')}`;
  throw new UsageFailure(problem, json.hint === NOT_JSON ? advice : undefined);
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = errorCode(error) ?? 'unreadable';
    throw fileFailure(`--rules: ${bounded(path, MAX_PROBLEM_CHARACTERS)}`, 'read', code);
  }
}
