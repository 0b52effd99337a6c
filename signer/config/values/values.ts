// The kinds of value an option can take: what it accepts in words, how it is written as text, and which schema decides.
// No message repeats the value it refuses.

import { isIP } from 'node:net';
import { z } from 'zod';
import { isDeploymentId } from '../../../ceremony/definition.ts';
import { parseKeyArn } from '../../../ceremony/key-arn.ts';
import { canonicalPublicKey } from '../../../common/formats/hex.ts';
import { LOG_LEVELS, LOG_MODULES, parseLogFilter } from '../../../common/observe/log-filter.ts';
import { HOSTNAME } from '../../api/egress.ts';
import { type Cidr, parseCidr, unsafeCidrReason } from '../../auth/cidr.ts';
import { isTable } from '../../aws/table-name.ts';
import { parsePostgresUrl } from '../../slashing/postgres/connection/address.ts';
import { BrokenReference, Secret } from './secret.ts';

/** `repeated`: one item a flag, comma-separated elsewhere. */
type TextForm = 'text' | 'integer' | 'boolean' | 'list' | 'repeated' | 'object';

export interface Kind<Value> {
  readonly expects: string;
  readonly form: TextForm;
  readonly schema: z.ZodType<Value>;
  readonly choices?: readonly string[];
}

/** No option that lists things needs more; policies and keys have limits of their own. */
const MAX_LIST_ITEMS = 1024;
const MAX_TEXT_CHARACTERS = 4096;

export function integer(min: number, max: number): Kind<number> {
  const expects = `an integer from ${min} to ${max}`;
  return { expects, form: 'integer', schema: z.int(must(expects)).min(min, must(expects)).max(max, must(expects)) };
}

/** 0 makes the system choose a free port, which tests use. */
export const port: Kind<number> = integer(0, 65_535);

export const booleanValue: Kind<boolean> = {
  expects: 'true or false',
  form: 'boolean',
  schema: z.boolean(must('true or false')),
};

export function oneOf<const Choices extends readonly [string, ...string[]]>(
  ...choices: Choices
): Kind<Choices[number]> {
  const expects = `one of ${choices.join(', ')}`;
  return { expects, form: 'text', schema: z.enum(choices, must(expects)) as z.ZodType<Choices[number]>, choices };
}

export const text: Kind<string> = textThat('non-empty text', (value) => value !== '');

export const table: Kind<string> = textThat(
  'the name of a DynamoDB table (3 to 255 of A-Z a-z 0-9 _ . -) or its ARN, arn:aws:dynamodb:REGION:ACCOUNT:table/NAME',
  isTable,
);

export const keyArnValue: Kind<string> = textThat(
  'a KMS key ARN, arn:aws:kms:REGION:ACCOUNT:key/KEY-ID in lower case; an alias is not accepted',
  (value) => parseKeyArn(value) !== undefined,
);

/** AWS KMS API Reference, Decrypt. */
const MAX_CIPHERTEXT_BYTES = 6144;
const SEALED_BYTES = `base64 on one line, of at most ${MAX_CIPHERTEXT_BYTES} bytes`;

/** Base64 that has one spelling. */
export const ciphertextBytes: Kind<string> = {
  expects: SEALED_BYTES,
  form: 'text',
  schema: z
    .string(must(SEALED_BYTES))
    .min(1, must(SEALED_BYTES))
    .max(MAX_CIPHERTEXT_BYTES * 2, must(SEALED_BYTES))
    .refine((value) => {
      const bytes = Buffer.from(value, 'base64');
      return bytes.length <= MAX_CIPHERTEXT_BYTES && bytes.toString('base64') === value;
    }, must(SEALED_BYTES)),
};

export const deploymentId: Kind<string> = textThat('up to 1024 of A-Z a-z 0-9 . _ : / -', isDeploymentId);

const ADDRESS = textThat(
  'an IP address or a host name',
  (value) => isIP(value) !== 0 || (HOSTNAME.test(value) && !/^[\d.]+$/.test(value)),
);

/** `localhost` is 127.0.0.1, as in the URLs of all pages: by Debian's file of hosts it would be ::1 alone. */
export const listenAddress: Kind<string> = {
  ...ADDRESS,
  schema: ADDRESS.schema.transform((value) => (value === 'localhost' ? '127.0.0.1' : value)),
};

export const logFilter: Kind<string> = textThat(
  `a level (${LOG_LEVELS.join(', ')}), or a filter like info,http=debug; modules: ${LOG_MODULES.join(', ')}`,
  (value) => parseLogFilter(value) !== undefined,
);

export const httpUrl: Kind<string> = textThat('an http or https URL without credentials', (value) => {
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
});

const POSTGRES_URL = 'a connection URL, postgres://USER@HOST/DATABASE, env:VAR_NAME or file:/PATH';

/** It may carry a password; shown without user, password and parameters. */
export const postgresUrl: Kind<Secret> = {
  expects: POSTGRES_URL,
  form: 'text',
  schema: z.unknown().transform((value, context) => {
    if (value instanceof BrokenReference) {
      context.addIssue({ code: 'custom', message: value.problem, params: { remedy: value.remedy } });
      return z.NEVER;
    }
    if (typeof value !== 'string') {
      context.addIssue({ code: 'invalid_type', expected: 'string', message: must(POSTGRES_URL) });
      return z.NEVER;
    }
    const reading = parsePostgresUrl(value);
    if (reading.kind === 'address') {
      const { protocol, host, pathname } = new URL(value);
      return new Secret(value, `${protocol}//${host}${pathname}`);
    }
    const problem = reading.kind === 'invalid' ? `: ${reading.problem}` : '';
    context.addIssue({ code: 'custom', message: `${must(POSTGRES_URL)}${problem}` });
    return z.NEVER;
  }),
};

export function hex(bytes: number): Kind<string> {
  const expects = `${bytes} bytes of hex, 0x and ${bytes * 2} digits`;
  const pattern = new RegExp(`^0[xX][0-9a-fA-F]{${bytes * 2}}$`);
  const schema = z.string(must(expects)).regex(pattern, must(expects));
  return { expects, form: 'text', schema: schema.transform((value) => value.toLowerCase()) };
}

export function listOf<Value>(item: Kind<Value>, form: 'list' | 'repeated' = 'list'): Kind<Value[]> {
  const expects = item.expects === text.expects ? 'a list of non-empty strings' : `a list, each ${item.expects}`;
  return listThat(expects, item.schema, form);
}

const CORS_ORIGIN = 'an origin like https://example.org, without a path, or *';

/** An empty list allows no origin, as null does. */
export const corsOrigins: Kind<string[] | null> = {
  expects: `a list, each ${CORS_ORIGIN}; or null`,
  form: 'list',
  schema: z
    .array(z.string(must(CORS_ORIGIN)).refine(isOrigin, must(CORS_ORIGIN)), must('a list of origins or null'))
    .max(MAX_LIST_ITEMS)
    .refine((origins) => origins.length === 1 || !origins.includes('*'), 'must not name origins beside *')
    .nullable()
    .transform((origins) => (origins?.length === 0 ? null : origins)),
};

const HOST_NAME = 'a host name or an IP address, without a port';

/** In lower case, as `Host` is compared. With an empty list no client would be answered. */
export const hostNames: Kind<string[] | null> = {
  expects: `a list, each ${HOST_NAME}; or null`,
  form: 'list',
  schema: z
    .array(
      z
        .string(must(HOST_NAME))
        .toLowerCase()
        .refine((name) => isIP(name) !== 0 || HOSTNAME.test(name), must(HOST_NAME)),
      must('a list of host names or null'),
    )
    .min(1, must('null, or name at least one host'))
    .max(MAX_LIST_ITEMS)
    .nullable(),
};

export const safeCidrSchema = z.string('must be a CIDR range, as in 10.1.0.0/16').transform((value, context): Cidr => {
  const cidr = parseCidr(value);
  const problem = 'refused' in cidr ? cidr.refused : unsafeCidrReason(cidr);
  if (!('refused' in cidr) && problem === undefined) return cidr;
  context.addIssue({ code: 'custom', message: `is refused: ${problem}` });
  return z.NEVER;
});

export const safeCidrs: Kind<Cidr[]> = listThat(
  'a list of CIDR ranges, IPv4 prefixes at least /8, IPv6 at least /16',
  safeCidrSchema,
);

const PUBLIC_KEY = 'a validator public key, 48 bytes of hex';

/** Canonical. Not the API's schema, whose message repeats the start of what may be a private key. */
export const publicKeys: Kind<string[]> = listThat(
  'a list of validator public keys',
  z.string(must(PUBLIC_KEY)).transform((value, context) => {
    const publicKey = canonicalPublicKey(value);
    if (publicKey !== undefined) return publicKey;
    context.addIssue({ code: 'custom', message: must(PUBLIC_KEY) });
    return z.NEVER;
  }),
);

export function object<Value>(expects: string, schema: z.ZodType<Value>): Kind<Value> {
  return { expects, form: 'object', schema };
}

export function listThat<Value>(
  expects: string,
  item: z.ZodType<Value>,
  form: 'list' | 'repeated' = 'list',
): Kind<Value[]> {
  return {
    expects,
    form,
    schema: z.array(item, must(expects)).max(MAX_LIST_ITEMS, `has over ${MAX_LIST_ITEMS} items`),
  };
}

function textThat(expects: string, accepts: (value: string) => boolean): Kind<string> {
  const schema = z.string(must(expects)).max(MAX_TEXT_CHARACTERS, must(expects)).refine(accepts, must(expects));
  return { expects, form: 'text', schema };
}

function isOrigin(value: string): boolean {
  const url = URL.parse(value);
  return value === '*' || (url !== null && /^https?:$/.test(url.protocol) && url.origin === value);
}

function must(expects: string): string {
  return `must be ${expects}`;
}

export const DAY = 86_400;
export const SECONDS = integer(1, DAY);
export const SECONDS_OR_OFF = integer(0, DAY);
export const CONCURRENCY = integer(1, 1024);
