// The rules that `operator auth policy create` and `update` are given: of a preset, as JSON on the command line, or of
// a file, which is JSON, or YAML when its name says so, as guides and configurations have them. They are checked with
// the signer's own schema, so that a mistake is named before anything is sent.

import { readFileSync } from 'node:fs';
import { bounded, renderPlace } from '../command-line/text.ts';
import { type Policy, policyRulesSchema } from '../enclave/api/policy.ts';
import { errorCode } from '../formats/error-code.ts';
import { NOT_JSON } from '../formats/json-scan.ts';
import { parseStrictJson } from '../formats/strict-json.ts';
import { parseStrictYaml } from '../formats/yaml.ts';
import { UsageFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';
import { PRESET_NAMES, PRESETS } from './policy-presets.ts';

/** The list of all scopes or operations fits. */
const MAX_PROBLEM_CHARACTERS = 800;
const YAML_FILE = /\.ya?ml$/i;

/** @throws CommandFailure */
export function rulesOf(given: {
  readonly rules?: string | undefined;
  readonly preset?: string | undefined;
}): Policy['rules'] {
  const { rules, preset } = given;
  if ((rules === undefined) === (preset === undefined)) {
    throw new UsageFailure(`give one of --rules and --preset (${PRESET_NAMES.join(', ')})`);
  }
  if (rules !== undefined) return readRules(rules);
  const name = PRESET_NAMES.find((known) => known === preset);
  if (name === undefined) throw new Error('the description lists the presets');
  return PRESETS[name].map((rule) => rule);
}

const INLINE = 'write a list of rules, as [{"effect":"allow","scopes":["sign"]}], or @FILE for a file that holds one';

function readRules(written: string): Policy['rules'] {
  const value = written.startsWith('@') ? readFile(written.slice(1)) : readJson(Buffer.from(written), INLINE);
  const parsed = policyRulesSchema.safeParse({ rules: listIn(value) });
  if (parsed.success) return parsed.data.rules;
  const [issue] = parsed.error.issues;
  const place = renderPlace(issue?.path ?? []);
  throw new UsageFailure(bounded(`--rules: ${place}: ${issue?.message}`, MAX_PROBLEM_CHARACTERS));
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
