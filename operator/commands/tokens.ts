// `strongroom operator auth token …`. A new token is in one answer only: it goes to stdout once and is kept nowhere.

import { renderFields, renderTable } from '../../command-line/table.ts';
import { note } from '../../command-line/terminal.ts';
import { bounded } from '../../command-line/text.ts';
import {
  ACCESSOR_PATTERN,
  createdTokenSchema,
  type TokenRecord,
  tokenListSchema,
  tokenRecordSchema,
} from '../../enclave/api/auth.ts';
import { MAX_TTL_SECONDS, tokenRequestSchema } from '../../enclave/api/policy.ts';
import { STATEFUL } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import type { tokenCreate, tokenList, tokenLookup, tokenRevoke } from '../descriptions/authorization.ts';
import { UsageFailure } from '../exit.ts';

const TOKENS = '/api/v1/auth/tokens';
const MAX_PROBLEM_CHARACTERS = 300;

export async function createToken({
  values,
  client,
  output,
  terminal,
}: RemoteCall<typeof tokenCreate.flags>): Promise<void> {
  const json = readTokenRequest({
    policies: splitList('policies', values.policies),
    bound_cidrs: splitList('bound-cidrs', values['bound-cidrs']),
    ttl_seconds: readSeconds(values['ttl-seconds']),
    description: values.description,
    management: values.management,
  });
  const answer = await client.request({ method: 'POST', path: TOKENS, json, ...STATEFUL }, createdTokenSchema);
  output.answer(answer, ({ token, ...record }, columns) => `${renderToken(record, columns)}\ntoken\n${token}\n`);
  note(terminal, 'the token is shown this once: store it now; who has it can use it');
}

export async function listTokens({ client, output }: RemoteCall<typeof tokenList.flags>): Promise<void> {
  output.answer(
    await client.request({ method: 'GET', path: TOKENS, ...STATEFUL }, tokenListSchema),
    ({ tokens }, columns) => (tokens.length === 0 ? 'no tokens\n' : renderTokens(tokens, columns)),
  );
}

export async function showToken({ values, client, output }: RemoteCall<typeof tokenLookup.flags>): Promise<void> {
  const path = pathOf(values.accessor);
  output.answer(
    await client.request({ method: 'GET', path, subject: subjectOf(values.accessor) }, tokenRecordSchema),
    renderToken,
  );
}

export async function revokeToken({
  values,
  client,
  terminal,
  confirm,
}: RemoteCall<typeof tokenRevoke.flags>): Promise<void> {
  const path = pathOf(values.accessor);
  await confirm(`Requests with the token ${values.accessor} will be rejected, for good.`, values.accessor);
  await client.send({ method: 'DELETE', path, subject: subjectOf(values.accessor) });
  note(terminal, `revoked token ${values.accessor}`);
}

/** The request, without what was not given. */
function readTokenRequest(given: Readonly<Record<string, unknown>>) {
  const stated = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const parsed = tokenRequestSchema.safeParse(stated);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const flag = String(issue?.path[0]).replaceAll('_', '-');
  throw new UsageFailure(bounded(`--${flag}: ${issue?.message}`, MAX_PROBLEM_CHARACTERS));
}

function splitList(flag: string, written: string | undefined): string[] | undefined {
  const items = written?.split(',').map((item) => item.trim());
  if (items?.includes('') === true)
    throw new UsageFailure(`--${flag} has an empty item`, 'write the items with one comma between them');
  return items;
}

function readSeconds(written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const seconds = /^[0-9]{1,9}$/.test(written) ? Number(written) : 0;
  if (seconds < 1 || seconds > MAX_TTL_SECONDS) {
    throw new UsageFailure(`--ttl-seconds is a whole number of seconds, 1 to ${MAX_TTL_SECONDS}`);
  }
  return seconds;
}

function subjectOf(accessor: string): string {
  return `token with the accessor ${accessor}`;
}

function pathOf(accessor: string): string {
  // Not repeated: it may be a token in the wrong place.
  if (!ACCESSOR_PATTERN.test(accessor))
    throw new UsageFailure(
      '--accessor is acc_ and 32 hex digits; a token is not one',
      'operator auth token list shows the accessors',
    );
  return `${TOKENS}/${accessor}`;
}

function renderTokens(records: readonly TokenRecord[], columns: number): string {
  return renderTable(
    ['ACCESSOR', 'KIND', 'EXPIRES AT', 'POLICIES (DESCRIPTION)'],
    records.map(({ accessor, kind, root, expires_at, policies, description }) => [
      accessor,
      root ? 'root' : kind,
      expires_at ?? 'never',
      `${policies.join(', ')}${description === null ? '' : ` (${description})`}`.trimStart(),
    ]),
    columns,
  );
}

function renderToken(record: TokenRecord, columns: number): string {
  const fields: (readonly [string, string])[] = [
    ['accessor', record.accessor],
    ['kind', record.root ? 'management (root)' : record.kind],
    ['policies', record.policies.join(', ') || 'none'],
    ['bound CIDRs', record.bound_cidrs.join(', ') || 'from anywhere'],
    ['description', record.description ?? 'none'],
    ['created at', record.created_at],
    ['expires at', record.expires_at ?? 'never'],
    ['revision', String(record.revision)],
  ];
  return renderFields(fields, columns);
}
