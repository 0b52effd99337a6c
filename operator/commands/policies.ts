// `strongroom operator auth policy …`. Rules are checked here with the signer's own schema, so that a mistake is named
// before anything is sent.

import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { renderFields, renderTable } from '../../command-line/table.ts';
import { note, type Terminal } from '../../command-line/terminal.ts';
import { bounded, renderPlace } from '../../command-line/text.ts';
import { type PolicyRecord, policyListSchema, policyRecordSchema } from '../../enclave/api/auth.ts';
import { type Policy, policyNameSchema, policyRulesSchema } from '../../enclave/api/policy.ts';
import { remarksOn } from '../../enclave/api/rule-remarks.ts';
import { parseStrictJson } from '../../formats/strict-json.ts';
import { type Group, remoteCommand, YES } from '../command.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import type { Output } from '../output.ts';
import { PRESET_NAMES, PRESETS } from './policy-presets.ts';

const POLICIES = '/api/v1/auth/policies';
const ANY = 'any';
/** `+ ` before a line. */
const MARK_COLUMNS = 2;
/** The list of all scopes or operations fits. */
const MAX_PROBLEM_CHARACTERS = 800;

const NAME = { name: { placeholder: 'NAME', meaning: 'Of the policy', required: true } } as const;
const RULES = {
  rules: {
    placeholder: 'JSON',
    meaning: 'List of rules or @FILE (docs/guides/authorization.md)',
    required: true,
  },
} as const;

const DRY_RUN = { 'dry-run': { meaning: 'Show what would change, and change nothing' } } as const;

const create = remoteCommand({
  summary: 'Create a policy',
  flags: {
    ...NAME,
    rules: { placeholder: RULES.rules.placeholder, meaning: RULES.rules.meaning },
    preset: { placeholder: 'NAME', meaning: `Instead: ${PRESET_NAMES.join(', ')}` },
    ...DRY_RUN,
  },
  examples: [
    'auth policy create --name validator-client --preset validator-client',
    `auth policy create --name all --rules '[{"effect":"allow","scopes":["sign"]}]'`,
  ],
  async run({ values, client, output, terminal }) {
    const json: Policy = { name: readName(values.name), rules: rulesOf(values) };
    remark(terminal, json.rules);
    if (values['dry-run']) {
      show(output, { before: [], after: json.rules });
      return;
    }
    output.answer(await client.request({ method: 'POST', path: POLICIES, json }, policyRecordSchema), renderPolicy);
  },
});

const list = remoteCommand({
  summary: 'List the policies',
  flags: {},
  examples: ['auth policy list', `auth policy list --json | jq -r '.policies[].name'`],
  async run({ client, output }) {
    output.answer(await client.request({ method: 'GET', path: POLICIES }, policyListSchema), ({ policies }, columns) =>
      policies.length === 0 ? 'no policies\n' : renderPolicies(policies, columns),
    );
  },
});

const get = remoteCommand({
  summary: 'Show a policy with its rules',
  flags: { ...NAME },
  examples: ['auth policy get --name validator-client', 'auth policy get --name monitoring --json'],
  async run({ values, client, output }) {
    const [path, subject] = [pathOf(values.name), subjectOf(values.name)];
    output.answer(await client.request({ method: 'GET', path, subject }, policyRecordSchema), renderPolicy);
  },
});

const update = remoteCommand({
  summary: "Replace a policy's rules",
  flags: { ...NAME, ...RULES, ...DRY_RUN, ...YES },
  examples: [
    'auth policy update --name validator-client --rules @rules.json --dry-run',
    `auth policy update --name signing --rules '[{"effect":"deny"}]' --yes`,
  ],
  async run({ values, client, output, terminal, confirm }) {
    const [path, subject] = [pathOf(values.name), subjectOf(values.name)];
    const request = { method: 'PUT', path, subject, json: { rules: readRules(values.rules) } } as const;
    remark(terminal, request.json.rules);
    if (values['dry-run']) {
      const { value } = await client.request({ method: 'GET', path, subject }, policyRecordSchema);
      show(output, { before: value.rules, after: request.json.rules });
      return;
    }
    await confirm(`Its new rules replace all rules of the policy ${values.name}, those that deny too.`, values.name);
    output.answer(await client.request(request, policyRecordSchema), renderPolicy);
  },
});

const remove = remoteCommand({
  summary: 'Delete a policy that no live token is bound to',
  flags: { ...NAME, ...YES },
  examples: ['auth policy delete --name monitoring', 'auth policy delete --name monitoring --yes'],
  async run({ values, client, terminal, confirm }) {
    const path = pathOf(values.name);
    await confirm(`The policy ${values.name} and its rules will be gone.`, values.name);
    await client.send({ method: 'DELETE', path, subject: subjectOf(values.name) });
    note(terminal, `deleted policy ${values.name}`);
  },
});

export const policies: Group = {
  kind: 'group',
  summary: 'Policies: what tokens may do',
  commands: { create, list, get, update, delete: remove },
};

function readName(name: string): string {
  const parsed = policyNameSchema.safeParse(name);
  if (!parsed.success) throw new UsageFailure(`--name: ${parsed.error.issues[0]?.message}`);
  return parsed.data;
}

function pathOf(name: string): string {
  return `${POLICIES}/${encodeURIComponent(readName(name))}`;
}

function subjectOf(name: string): string {
  return `policy named ${name}`;
}

function readRules(written: string): Policy['rules'] {
  const json = parseStrictJson(written.startsWith('@') ? readRulesFile(written.slice(1)) : Buffer.from(written));
  if (json.kind === 'refused') throw new UsageFailure(`--rules: ${json.hint.replace('the body', 'the text')}`);
  const parsed = policyRulesSchema.safeParse({ rules: json.value });
  if (parsed.success) return parsed.data.rules;
  const [issue] = parsed.error.issues;
  const place = renderPlace(issue?.path ?? []);
  throw new UsageFailure(bounded(`--rules: ${place}: ${issue?.message}`, MAX_PROBLEM_CHARACTERS));
}

function rulesOf({ rules, preset }: { readonly rules?: string | undefined; readonly preset?: string | undefined }) {
  if ((rules === undefined) === (preset === undefined)) {
    throw new UsageFailure(`give one of --rules and --preset (${PRESET_NAMES.join(', ')})`);
  }
  if (rules !== undefined) return readRules(rules);
  const name = PRESET_NAMES.find((known) => known === preset);
  if (name === undefined) throw new UsageFailure(`--preset is one of ${PRESET_NAMES.join(', ')}`);
  return PRESETS[name].map((rule) => rule);
}

function remark(terminal: Terminal, rules: Policy['rules']): void {
  for (const text of remarksOn(rules)) note(terminal, `${text}.`);
}

function readRulesFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw localFailure(`--rules: ${bounded(path, MAX_PROBLEM_CHARACTERS)} cannot be read (${code})`);
  }
}

type Rule = Policy['rules'][number];

interface Change {
  readonly before: Policy['rules'];
  readonly after: Policy['rules'];
}

function show(output: Output, change: Change): void {
  output.answer({ value: change, text: JSON.stringify(change) }, renderChange);
}

/** Rules that stay, then `-` those that go and `+` those that come; a rule is the same when it says the same. */
function renderChange({ before, after }: Change, columns: number): string {
  const isIn = (rules: Policy['rules'], rule: Rule) => rules.some((other) => isDeepStrictEqual(other, rule));
  const goes = before.filter((rule) => !isIn(after, rule));
  const comes = after.filter((rule) => !isIn(before, rule));
  const marked = (mark: string, rules: Policy['rules']) =>
    rules.map((rule) =>
      renderRule(rule, (mark === '-' ? before : after).indexOf(rule), columns - MARK_COLUMNS)
        .replaceAll(/^/gm, `${mark} `)
        .slice(0, -2),
    );
  const stays = after.filter((rule) => isIn(before, rule));
  const verdict = goes.length + comes.length === 0 ? 'the rules would stay as they are' : 'nothing was changed';
  return `${[...marked(' ', stays), ...marked('-', goes), ...marked('+', comes)].join('\n')}\n${verdict}\n`;
}

function renderPolicies(records: readonly PolicyRecord[], columns: number): string {
  return renderTable(
    ['NAME', 'REVISION', 'UPDATED AT', 'RULES'],
    records.map(({ name, revision, updated_at, rules }) => [name, String(revision), updated_at, String(rules.length)]),
    columns,
  );
}

function renderPolicy({ name, revision, created_at, updated_at, rules }: PolicyRecord, columns: number): string {
  const head: (readonly [string, string])[] = [
    ['name', name],
    ['revision', String(revision)],
    ['created at', created_at],
    ['updated at', updated_at],
  ];
  return [renderFields(head, columns), ...rules.map((rule, index) => renderRule(rule, index, columns))].join('\n');
}

/**
 * Keys and addresses stand on lines of their own, where they can be copied. What a rule does not ask of payments is
 * left out.
 */
function renderRule(rule: Rule, index: number, columns: number): string {
  const { effect, scopes, operations, keys, fee_recipients: recipients, max_gas_limit: gasLimit } = rule;
  const fields: (readonly [string, string])[] = [
    [`rule ${index + 1}`, effect],
    ['scopes', scopes?.join(', ') ?? ANY],
    ['operations', operations?.join(', ') ?? ANY],
    ...(gasLimit === undefined ? [] : [['max gas limit', String(gasLimit)] as const]),
    ['keys', keys === undefined ? ANY : `these ${keys.length}`],
  ];
  const payments = recipients === undefined ? '' : renderFields([['fee recipients', `these ${recipients.length}`]]);
  return renderFields(fields, columns) + linesOf(keys) + payments + linesOf(recipients);
}

function linesOf(items: readonly string[] = []): string {
  return items.map((item) => `${item}\n`).join('');
}
