// `strongroom operator auth policy …`. With --dry-run they show what would be sent, next to what the signer has.

import { isDeepStrictEqual } from 'node:util';
import type { Paint } from '../../common/command-line/paint.ts';
import { renderFields, renderTable } from '../../common/command-line/table.ts';
import { note, type Terminal } from '../../common/command-line/terminal.ts';
import { explainIssue } from '../../common/formats/issues.ts';
import { type PolicyRecord, policyListSchema, policyRecordSchema } from '../../signer/api/auth.ts';
import { type Policy, policyNameSchema } from '../../signer/api/policy.ts';
import { paymentRemarksOn, scopeRemarksOn } from '../../signer/api/rule-remarks.ts';
import { STATEFUL } from '../client.ts';
import { remoteCommand, YES } from '../command.ts';
import { UsageFailure } from '../exit.ts';
import type { AnswerOutput } from '../output.ts';
import { PRESET_NAMES } from '../policy-presets.ts';
import { rulesOf } from '../policy-rules.ts';

const NAME = { name: { placeholder: 'NAME', meaning: 'Of the policy', required: true } } as const;

const RULES = {
  rules: { placeholder: 'JSON', meaning: 'List of rules, or @FILE, which may be YAML (docs/guides/authorization.md)' },
  preset: {
    placeholder: 'NAME',
    meaning: `Instead of --rules, rules for such a holder: ${PRESET_NAMES.join(', ')}`,
    choices: PRESET_NAMES,
  },
  'fee-recipient': {
    placeholder: 'ADDRESS',
    repeatable: true,
    meaning: 'With --preset validator-client: proposers are paid at this address, and at no other',
  },
  'max-gas-limit': { placeholder: 'GAS', meaning: 'With that preset: the highest gas limit that it signs for' },
  builder: {
    placeholder: 'HOST',
    repeatable: true,
    meaning: 'With that preset: a builder that a proposer may ask (Gloas), by its host name or 0x bytes, and no other',
  },
} as const;

const DRY_RUN = { 'dry-run': { meaning: 'Show what would change, and change nothing' } } as const;

const POLICIES = '/api/v1/auth/policies';
const ANY = 'any';
const MARK_COLUMNS = 2;

export const policyCreate = remoteCommand(
  {
    summary: 'Create a policy',
    flags: {
      ...NAME,
      ...RULES,
      ...DRY_RUN,
    },
    examples: [
      'auth policy create --name validator-client --preset validator-client',
      'auth policy create --name paid --preset validator-client \\\n' +
        '  --fee-recipient 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed --max-gas-limit 60000000 --builder builder.example.org',
    ],
  },

  async ({ values, client, output, terminal }) => {
    const json: Policy = { name: readName(values.name), rules: rulesOf(values) };
    remark(terminal, json.rules);
    if (values['dry-run']) {
      show(output, { before: [], after: json.rules });
      return;
    }
    output.answer(
      await client.request({ method: 'POST', path: POLICIES, json, ...STATEFUL }, policyRecordSchema),
      renderPolicy,
    );
  },
);

export const policyList = remoteCommand(
  {
    summary: 'List the policies',
    flags: {},
    examples: ['auth policy list', `auth policy list --json | jq -r '.policies[].name'`],
  },

  async ({ client, output }) => {
    output.answer(
      await client.request({ method: 'GET', path: POLICIES, ...STATEFUL }, policyListSchema),
      ({ policies }, columns) => (policies.length === 0 ? 'no policies\n' : renderPolicies(policies, columns)),
    );
  },
);

export const policyGet = remoteCommand(
  {
    summary: 'Show a policy with its rules',
    flags: { ...NAME },
    examples: ['auth policy get --name validator-client', 'auth policy get --name monitoring --json'],
  },

  async ({ values, client, output }) => {
    const [path, subject] = [pathOf(values.name), subjectOf(values.name)];
    output.answer(await client.request({ method: 'GET', path, subject }, policyRecordSchema), renderPolicy);
  },
);

export const policyUpdate = remoteCommand(
  {
    summary: "Replace a policy's rules",
    flags: { ...NAME, ...RULES, ...DRY_RUN, ...YES },
    examples: [
      'auth policy update --name validator-client --preset validator-client --dry-run',
      'auth policy update --name signing --rules @rules.yaml --yes',
    ],
  },

  async ({ values, client, output, terminal, confirm }) => {
    const [path, subject] = [pathOf(values.name), subjectOf(values.name)];
    const request = { method: 'PUT', path, subject, json: { rules: rulesOf(values) } } as const;
    remark(terminal, request.json.rules);
    if (values['dry-run']) {
      const { value } = await client.request({ method: 'GET', path, subject }, policyRecordSchema);
      show(output, { before: value.rules, after: request.json.rules });
      return;
    }
    await confirm(`Its new rules replace all rules of the policy ${values.name}, those that deny too.`, values.name);
    output.answer(await client.request(request, policyRecordSchema), renderPolicy);
  },
);

export const policyDelete = remoteCommand(
  {
    summary: 'Delete a policy that no live token is bound to',
    flags: { ...NAME, ...YES },
    examples: ['auth policy delete --name monitoring', 'auth policy delete --name monitoring --yes'],
  },

  async ({ values, client, terminal, confirm }) => {
    const path = pathOf(values.name);
    await confirm(`The policy ${values.name} and its rules will be gone.`, values.name);
    await client.send({ method: 'DELETE', path, subject: subjectOf(values.name) });
    note(terminal, `deleted policy ${values.name}`);
  },
);

function readName(name: string): string {
  const parsed = policyNameSchema.safeParse(name, { error: explainIssue });
  if (!parsed.success) throw new UsageFailure(`--name: ${parsed.error.issues[0]?.message}`);
  return parsed.data;
}

function pathOf(name: string): string {
  return `${POLICIES}/${encodeURIComponent(readName(name))}`;
}

function subjectOf(name: string): string {
  return `policy named ${name}`;
}

/** @returns sentences without their end; rules are counted from 1 */
export function remarksOn(rules: Policy['rules']): string[] {
  return [...paymentRemarksOn(rules), ...scopeRemarksOn(rules)];
}

function remark(terminal: Terminal, rules: Policy['rules']): void {
  for (const text of remarksOn(rules)) note(terminal, `${text}.`);
}

type Rule = Policy['rules'][number];

interface Change {
  readonly before: Policy['rules'];
  readonly after: Policy['rules'];
}

function show(output: AnswerOutput, change: Change): void {
  output.answer({ value: change, text: JSON.stringify(change) }, renderChange);
}

function renderChange({ before, after }: Change, columns: number, paint: Paint): string {
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
  const gone = marked('-', goes).map((rule) => paint(rule, 'bad'));
  const come = marked('+', comes).map((rule) => paint(rule, 'good'));
  return `${[...marked(' ', stays), ...gone, ...come].join('\n')}\n${verdict}\n`;
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

/** Keys, addresses and builders stand on lines of their own, where they can be copied. */
function renderRule(rule: Rule, index: number, columns: number): string {
  const { effect, scopes, operations, keys, fee_recipients: recipients, max_gas_limit: gasLimit, builders } = rule;
  const { builder_indices: indices, only_for_own_blocks: own } = rule;
  const fields: (readonly [string, string])[] = [
    [`rule ${index + 1}`, effect],
    ['scopes', scopes?.join(', ') ?? ANY],
    ['operations', operations?.join(', ') ?? ANY],
    ...(gasLimit === undefined ? [] : [['max gas limit', String(gasLimit)] as const]),
    ...(indices === undefined ? [] : [['builder indices', indices.join(', ')] as const]),
    ...(own === undefined ? [] : [['own blocks', 'only'] as const]),
    ['keys', keys === undefined ? ANY : counted(keys, 'key')],
  ];
  const payments =
    recipients === undefined ? '' : renderFields([['fee recipients', counted(recipients, 'address', 'addresses')]]);
  const asked = builders === undefined ? '' : renderFields([['builders', counted(builders, 'builder')]]);
  return renderFields(fields, columns) + linesOf(keys) + payments + linesOf(recipients) + asked + linesOf(builders);
}

function counted(items: readonly string[], one: string, many = `${one}s`): string {
  return `${items.length} ${items.length === 1 ? one : many}:`;
}

function linesOf(items: readonly string[] = []): string {
  return items.map((item) => `${item}\n`).join('');
}
