// `strongroom operator auth policy …`. What --dry-run shows is what would be sent, beside what the signer has.

import { isDeepStrictEqual } from 'node:util';
import { renderFields, renderTable } from '../../command-line/table.ts';
import { note, type Terminal } from '../../command-line/terminal.ts';
import { type PolicyRecord, policyListSchema, policyRecordSchema } from '../../enclave/api/auth.ts';
import { type Policy, policyNameSchema } from '../../enclave/api/policy.ts';
import { remarksOn } from '../../enclave/api/reference/rule-remarks.ts';
import { STATEFUL } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import type { policyCreate, policyDelete, policyGet, policyList, policyUpdate } from '../descriptions/authorization.ts';
import { UsageFailure } from '../exit.ts';
import type { Output } from '../output.ts';
import { rulesOf } from '../policy-rules.ts';

const POLICIES = '/api/v1/auth/policies';
const ANY = 'any';
/** `+ ` before a line. */
const MARK_COLUMNS = 2;

export async function createPolicy({
  values,
  client,
  output,
  terminal,
}: RemoteCall<typeof policyCreate.flags>): Promise<void> {
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
}

export async function listPolicies({ client, output }: RemoteCall<typeof policyList.flags>): Promise<void> {
  output.answer(
    await client.request({ method: 'GET', path: POLICIES, ...STATEFUL }, policyListSchema),
    ({ policies }, columns) => (policies.length === 0 ? 'no policies\n' : renderPolicies(policies, columns)),
  );
}

export async function showPolicy({ values, client, output }: RemoteCall<typeof policyGet.flags>): Promise<void> {
  const [path, subject] = [pathOf(values.name), subjectOf(values.name)];
  output.answer(await client.request({ method: 'GET', path, subject }, policyRecordSchema), renderPolicy);
}

export async function updatePolicy({
  values,
  client,
  output,
  terminal,
  confirm,
}: RemoteCall<typeof policyUpdate.flags>): Promise<void> {
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
}

export async function deletePolicy({
  values,
  client,
  terminal,
  confirm,
}: RemoteCall<typeof policyDelete.flags>): Promise<void> {
  const path = pathOf(values.name);
  await confirm(`The policy ${values.name} and its rules will be gone.`, values.name);
  await client.send({ method: 'DELETE', path, subject: subjectOf(values.name) });
  note(terminal, `deleted policy ${values.name}`);
}

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

function remark(terminal: Terminal, rules: Policy['rules']): void {
  for (const text of remarksOn(rules)) note(terminal, `${text}.`);
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
