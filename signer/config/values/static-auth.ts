// The `static_auth` object (specification/authorization.md#static-auth). Token secrets become Secrets before the schema
// sees them, so that no message can repeat one.

import { z } from 'zod';
import { isRecord } from '../../../common/formats/is-record.ts';
import { MAX_CIDRS_PER_TOKEN, MAX_POLICIES_PER_TOKEN, policyNameSchema, policySchema } from '../../api/policy.ts';
import { BrokenReference, readSecret, Secret, type SecretSources, unsendable } from './secret.ts';
import { safeCidrSchema } from './values.ts';

const MAX_STATIC_POLICIES = 1024;
const MAX_STATIC_TOKENS = 1024;
const MIN_SECRET_CHARACTERS = 16;
/** A longer one would not fit the request headers. */
const MAX_SECRET_BYTES = 4096;

/** The input is a Secret, a BrokenReference, or not text at all. */
export const secretSchema = z.unknown().transform((input, context): Secret => {
  const broken = secretProblem(input);
  if (broken === undefined && input instanceof Secret) return input;
  const { problem = 'must be text', remedy } = broken ?? {};
  context.addIssue({ code: 'custom', message: problem, params: { remedy } });
  return z.NEVER;
});

export const policyNamesSchema = z
  .array(policyNameSchema)
  .max(MAX_POLICIES_PER_TOKEN, `must name at most ${MAX_POLICIES_PER_TOKEN} policies`);

/** Begins with a letter, so that no name is another token's index. */
export const tokenNameSchema = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ - and start with a letter');

const tokenSchema = z.strictObject({
  name: tokenNameSchema.exactOptional(),
  secret: secretSchema,
  policies: policyNamesSchema.min(1, 'must name at least one policy: the token could do nothing'),
  bound_cidrs: z
    .array(safeCidrSchema)
    .max(MAX_CIDRS_PER_TOKEN, `must have at most ${MAX_CIDRS_PER_TOKEN} ranges`)
    .default([]),
});

export const staticAuthSchema = z.strictObject({
  policies: z
    .array(policySchema)
    .max(MAX_STATIC_POLICIES, `must have at most ${MAX_STATIC_POLICIES} policies`)
    .default([]),
  anonymous: z.strictObject({ policies: policyNamesSchema.default([]) }).default({ policies: [] }),
  tokens: z.array(tokenSchema).max(MAX_STATIC_TOKENS, `must have at most ${MAX_STATIC_TOKENS} tokens`).default([]),
});

export type StaticAuth = z.output<typeof staticAuthSchema>;

export function withSecrets(
  value: unknown,
  sources: SecretSources,
): { readonly value: unknown; readonly variables: readonly string[] } {
  const variables: string[] = [];
  if (!isRecord(value) || !Array.isArray(value['tokens'])) return { value, variables };
  const tokens = value['tokens'].map((token: unknown) => {
    if (!isRecord(token) || typeof token['secret'] !== 'string') return token;
    const { secret, variable } = readSecret(token['secret'], sources);
    if (variable !== undefined) variables.push(variable);
    return { ...token, secret };
  });
  return { value: { ...value, tokens }, variables };
}

function secretProblem(input: unknown): BrokenReference | undefined {
  if (input === undefined)
    return new BrokenReference('is required', 'write env:VAR_NAME, file:/PATH, or the secret itself');
  if (input instanceof BrokenReference) return input;
  if (!(input instanceof Secret)) {
    const remedy = typeof input === 'number' ? 'quote it: digits alone are a number' : 'write env:VAR_NAME or a text';
    return new BrokenReference('must be text', remedy);
  }
  const bytes = input.reveal();
  const text = bytes.toString('utf8');
  const remedy = 'make a new one, for instance with `openssl rand -hex 32`';
  if (bytes.length > MAX_SECRET_BYTES) return new BrokenReference(`must be at most ${MAX_SECRET_BYTES} bytes`, remedy);
  if ([...text.trim()].length < MIN_SECRET_CHARACTERS) {
    return new BrokenReference(`must be at least ${MIN_SECRET_CHARACTERS} characters`, remedy);
  }
  return unsendable(text);
}
