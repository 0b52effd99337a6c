// `strongroom operator auth token …`. A new token is in one answer only: it goes to stdout once and is kept nowhere.

import { renderFields, renderTable } from '../../common/command-line/table.ts';
import { note } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { explainIssue } from '../../common/formats/issues.ts';
import {
  ACCESSOR_PATTERN,
  createdTokenSchema,
  type TokenRecord,
  tokenListSchema,
  tokenRecordSchema,
} from '../../signer/api/auth.ts';
import { MAX_TTL_SECONDS, tokenRequestSchema } from '../../signer/api/policy.ts';
import { STATEFUL } from '../client.ts';
import { remoteCommand, YES } from '../command.ts';
import { UsageFailure } from '../exit.ts';

const ACCESSOR = { accessor: { placeholder: 'ACCESSOR', meaning: 'Of the token', required: true } } as const;

const TOKENS = '/api/v1/auth/tokens';
const MAX_PROBLEM_CHARACTERS = 300;

export const tokenCreate = remoteCommand(
  {
    summary: 'Create a token, which is shown once',
    flags: {
      policies: { placeholder: 'NAME,NAME', meaning: 'Policies that govern the token' },
      ttl: { placeholder: 'TIME', meaning: 'Lifetime: 90d, 12h, 30m or 60s; 90d when not given' },
      'ttl-seconds': { placeholder: 'NUMBER', meaning: 'The same, in seconds' },
      'no-expiry': { meaning: 'The token lives until it is revoked' },
      'bound-cidrs': { placeholder: 'CIDR,CIDR', meaning: 'Source networks it works from; else from anywhere' },
      description: { placeholder: 'TEXT', meaning: 'For people' },
      management: { meaning: 'A management token: administers policies and tokens' },
    },
    notes: [
      'In an enclave the address of a client is what its parent instance writes (the PROXY header): there ' +
        '--bound-cidrs restricts remote callers, not whoever controls the parent.',
    ],
    examples: [
      'auth token create --policies validator-client --bound-cidrs 10.0.4.0/24',
      'auth token create --management --ttl 8h --description Alice',
    ],
  },

  async ({ values, client, output, terminal }) => {
    const json = readTokenRequest({
      policies: splitList('policies', values.policies),
      bound_cidrs: splitList('bound-cidrs', values['bound-cidrs']),
      ttl_seconds: readLifetime(values),
      description: values.description,
      management: values.management,
    });
    const answer = await client.request({ method: 'POST', path: TOKENS, json, ...STATEFUL }, createdTokenSchema);
    output.answer(answer, ({ token, ...record }, columns) => `${renderToken(record, columns)}\ntoken\n${token}\n`);
    note(terminal, 'the token is shown this once: store it now; who has it can use it');
  },
);

export const tokenList = remoteCommand(
  {
    summary: 'List the tokens, without their secrets',
    flags: {},
    examples: ['auth token list', `auth token list --json | jq -r '.tokens[].accessor'`],
  },

  async ({ client, output }) => {
    output.answer(
      await client.request({ method: 'GET', path: TOKENS, ...STATEFUL }, tokenListSchema),
      ({ tokens }, columns) => (tokens.length === 0 ? 'no tokens\n' : renderTokens(tokens, columns)),
    );
  },
);

export const tokenLookup = remoteCommand(
  {
    summary: 'Show a token: the policies it is bound to, and its limits',
    flags: { ...ACCESSOR },
    examples: [
      'auth token lookup --accessor acc_0123456789abcdef0123456789abcdef',
      'auth token lookup --accessor "$ACCESSOR" --json',
    ],
  },

  async ({ values, client, output }) => {
    const path = pathOf(values.accessor);
    output.answer(
      await client.request({ method: 'GET', path, subject: subjectOf(values.accessor) }, tokenRecordSchema),
      renderToken,
    );
  },
);

export const tokenRevoke = remoteCommand(
  {
    summary: 'Revoke a token: requests with it are rejected',
    flags: { ...ACCESSOR, ...YES },
    examples: [
      'auth token revoke --accessor acc_0123456789abcdef0123456789abcdef',
      'auth token revoke --accessor acc_0123456789abcdef0123456789abcdef --yes',
    ],
  },

  async ({ values, client, terminal, confirm }) => {
    const path = pathOf(values.accessor);
    await confirm(`Requests with the token ${values.accessor} will be rejected, for good.`, values.accessor);
    await client.send({ method: 'DELETE', path, subject: subjectOf(values.accessor) });
    note(terminal, `revoked token ${values.accessor}`);
  },
);

function readTokenRequest(given: Readonly<Record<string, unknown>>) {
  const stated = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const parsed = tokenRequestSchema.safeParse(stated, { error: explainIssue });
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

/** A token that its owner forgets ends. */
const DEFAULT_TTL = '90d';
const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const MAX_TTL_DAYS = MAX_TTL_SECONDS / 86_400;

interface WrittenLifetime {
  readonly ttl?: string | undefined;
  readonly 'ttl-seconds'?: string | undefined;
  readonly 'no-expiry': boolean;
}

function readLifetime({ ttl, 'ttl-seconds': inSeconds, 'no-expiry': noExpiry }: WrittenLifetime): number | undefined {
  if ([ttl, inSeconds, noExpiry || undefined].filter((one) => one !== undefined).length > 1) {
    throw new UsageFailure('--ttl, --ttl-seconds and --no-expiry contradict each other: give one of them');
  }
  if (noExpiry) return undefined;
  const written = inSeconds === undefined ? (ttl ?? DEFAULT_TTL) : `${inSeconds}s`;
  const [, digits = '0', unit = ''] = /^([0-9]{1,9})([smhd])$/.exec(written) ?? [];
  const seconds = Number(digits) * (UNIT_SECONDS[unit] ?? 0);
  if (seconds < 1 || seconds > MAX_TTL_SECONDS) {
    throw new UsageFailure(
      inSeconds === undefined
        ? `--ttl is a whole number with d, h, m or s, up to ${MAX_TTL_DAYS}d`
        : `--ttl-seconds is a whole number, up to ${MAX_TTL_SECONDS}`,
      'for example --ttl 90d; --no-expiry makes a token that lives until it is revoked',
    );
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
