// `strongroom operator auth policy …`. Rules are checked here with the signer's own schema, so that a mistake is named
// before anything is sent.

import { readFileSync } from 'node:fs';
import { type PolicyRecord, policyListSchema, policyRecordSchema } from '../../enclave/api/auth.ts';
import { type Policy, policyNameSchema, policyRulesSchema } from '../../enclave/api/policy.ts';
import { remarksOn } from '../../enclave/api/rule-remarks.ts';
import { parseStrictJson } from '../../formats/strict-json.ts';
import { type Group, remoteCommand, YES } from '../command.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import { renderFields, renderTable } from '../table.ts';
import { note, type Terminal } from '../terminal.ts';
import { bounded, renderPlace } from '../text.ts';

const POLICIES = '/api/v1/auth/policies';
const ANY = 'any';
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

const create = remoteCommand({
  summary: 'Create a policy',
  flags: { ...NAME, ...RULES },
  examples: [
    `auth policy create --name all --rules '[{"effect":"allow","scopes":["sign"]}]'`,
    'auth policy create --name validator-client --rules @rules.json',
  ],
  async run({ values, client, output, terminal }) {
    const json: Policy = { name: readName(values.name), rules: readRules(values.rules) };
    remark(terminal, json.rules);
    output.answer(await client.request({ method: 'POST', path: POLICIES, json }, policyRecordSchema), renderPolicy);
  },
});

const list = remoteCommand({
  summary: 'List the policies',
  flags: {},
  examples: ['auth policy list', `auth policy list --output json | jq -r '.policies[].name'`],
  async run({ client, output }) {
    output.answer(await client.request({ method: 'GET', path: POLICIES }, policyListSchema), ({ policies }) =>
      policies.length === 0 ? 'no policies\n' : renderPolicies(policies),
    );
  },
});

const get = remoteCommand({
  summary: 'Show a policy with its rules',
  flags: { ...NAME },
  examples: ['auth policy get --name validator-client', 'auth policy get --name monitoring --output json'],
  async run({ values, client, output }) {
    const path = pathOf(values.name);
    output.answer(await client.request({ method: 'GET', path }, policyRecordSchema), renderPolicy);
  },
});

const update = remoteCommand({
  summary: "Replace a policy's rules",
  flags: { ...NAME, ...RULES, ...YES },
  examples: [
    'auth policy update --name validator-client --rules @rules.json',
    `auth policy update --name signing --rules '[{"effect":"deny"}]' --yes`,
  ],
  async run({ values, client, output, terminal, confirm }) {
    const request = { method: 'PUT', path: pathOf(values.name), json: { rules: readRules(values.rules) } } as const;
    remark(terminal, request.json.rules);
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
    await client.send({ method: 'DELETE', path });
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

function readRules(written: string): Policy['rules'] {
  const json = parseStrictJson(written.startsWith('@') ? readRulesFile(written.slice(1)) : Buffer.from(written));
  if (json.kind === 'refused') throw new UsageFailure(`--rules: ${json.hint.replace('the body', 'the text')}`);
  const parsed = policyRulesSchema.safeParse({ rules: json.value });
  if (parsed.success) return parsed.data.rules;
  const [issue] = parsed.error.issues;
  const place = renderPlace(issue?.path ?? []);
  throw new UsageFailure(bounded(`--rules: ${place}: ${issue?.message}`, MAX_PROBLEM_CHARACTERS));
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

function renderPolicies(records: readonly PolicyRecord[]): string {
  return renderTable(
    ['NAME', 'REVISION', 'UPDATED AT', 'RULES'],
    records.map(({ name, revision, updated_at, rules }) => [name, String(revision), updated_at, String(rules.length)]),
  );
}

function renderPolicy({ name, revision, created_at, updated_at, rules }: PolicyRecord): string {
  const fields = renderFields([
    ['name', name],
    ['revision', String(revision)],
    ['created at', created_at],
    ['updated at', updated_at],
  ]);
  return [fields, ...rules.map(renderRule)].join('\n');
}

/**
 * Keys and addresses stand on lines of their own, where they can be copied. What a rule does not ask of payments is
 * left out.
 */
function renderRule(rule: PolicyRecord['rules'][number], index: number): string {
  const { effect, scopes, operations, keys, fee_recipients: recipients, max_gas_limit: gasLimit } = rule;
  const fields = renderFields([
    [`rule ${index + 1}`, effect],
    ['scopes', scopes?.join(', ') ?? ANY],
    ['operations', operations?.join(', ') ?? ANY],
    ...(gasLimit === undefined ? [] : [['max gas limit', String(gasLimit)] as const]),
    ['keys', keys === undefined ? ANY : `these ${keys.length}`],
  ]);
  const payments = recipients === undefined ? '' : renderFields([['fee recipients', `these ${recipients.length}`]]);
  return fields + linesOf(keys) + payments + linesOf(recipients);
}

function linesOf(items: readonly string[] = []): string {
  return items.map((item) => `${item}\n`).join('');
}
