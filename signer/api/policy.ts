// Policies and token requests on the wire and in the configuration (specification/authorization.md#rules). An unknown
// member, an empty list or a null is refused, because each could widen a rule unnoticed.

import { z } from 'zod';
import { nearest } from '../../common/command-line/nearest.ts';
import { canonicalAddress } from '../../common/formats/address.ts';
import { canonicalPublicKey } from '../../common/formats/hex.ts';
import { OPERATIONS, SCOPES } from './operations.ts';
import { MAX_BUILDER_AUTH_BYTES, readUint64, refuseValue } from './primitives.ts';

const MAX_RULES_PER_POLICY = 256;
/** Twice the designed size of a signer (specification/limits.md#keys). */
const MAX_KEYS_PER_RULE = 200_000;
/** One for each of many customers. As many in one stored policy take about half of its row. */
const MAX_FEE_RECIPIENTS_PER_RULE = 4096;
const MAX_BUILDERS_PER_RULE = 256;
export const MAX_POLICIES_PER_TOKEN = 64;
export const MAX_CIDRS_PER_TOKEN = 64;
const MAX_CIDR_CHARACTERS = 49;
export const MAX_DESCRIPTION_CHARACTERS = 256;
export const MAX_TTL_SECONDS = 315_360_000;
const MAX_NAMES_PER_RULE = 64;

const MAX_QUOTED_CHARACTERS = 42;

export const policyNameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'a policy name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with none of . _ -',
  );

export const publicKeySchema = z.string().transform((text, context) => {
  const publicKey = canonicalPublicKey(text);
  if (publicKey !== undefined) return publicKey;
  context.addIssue({ code: 'custom', message: `not a validator public key (48 bytes of hex): ${quote(text)}` });
  return z.NEVER;
});

/** A mixed case states a checksum. Out: the canonical spelling, `0x` and 40 lower-case digits. */
const feeRecipientSchema = z
  .string('must be an address as text: quote it, because YAML reads 0x… as a number')
  .transform((text, context) => {
    const address = canonicalAddress(text);
    if (typeof address === 'string') return address;
    const problem =
      address.refused === 'wrong_checksum'
        ? 'the checksum does not hold (EIP-55: cases are mixed), so a digit is wrong; copy the address again'
        : 'not an address (20 bytes of hex)';
    context.addIssue({ code: 'custom', message: `${problem}: ${quote(text)}` });
    return z.NEVER;
  });

const BUILDER_HEX = /^0x(?:[0-9a-f]{2})+$/i;
/** Consensus-specs, BUILDER_INDEX_SELF_BUILD: the proposer built the payload. */
const SELF_BUILD = 'self';
const SELF_BUILD_INDEX = 2n ** 64n - 1n;

/** In: text, or `0x` and hex for the bytes. Out: the text as it stands, or the hex in lower case. */
const builderSchema = z
  .string('must be text, or bytes as 0x and hex: quote it, because YAML reads 0x… as a number')
  .transform((text, context) => {
    const isHex = /^0x/i.test(text);
    const length = isHex ? (text.length - 2) / 2 : Buffer.byteLength(text);
    if (isHex && length > 0 && !BUILDER_HEX.test(text)) {
      return refuseValue(context, text, `begins with 0x and is not hex of whole bytes: ${quote(text)}`);
    }
    if (length < 1 || length > MAX_BUILDER_AUTH_BYTES) {
      return refuseValue(context, text, `a builder is 1 to ${MAX_BUILDER_AUTH_BYTES} bytes: ${quote(text)}`);
    }
    return isHex ? text.toLowerCase() : text;
  });

/** In: a uint64 as text or number, or `self`. Out: decimal text without leading zeros, or `self`. */
const builderIndexSchema = z.union([z.string(), z.int()], 'must be a number, or self').transform((given, context) => {
  if (given === SELF_BUILD) return SELF_BUILD;
  const index = readUint64(given);
  if (index !== undefined) return index === SELF_BUILD_INDEX ? SELF_BUILD : index.toString();
  return refuseValue(context, given, `a builder index is a uint64, or self: ${quote(String(given))}`);
});

export function builderBytes(builder: string): string {
  return builder.startsWith('0x') ? builder : `0x${Buffer.from(builder).toString('hex')}`;
}

export function builderIndexNumber(index: string): bigint {
  return index === SELF_BUILD ? SELF_BUILD_INDEX : BigInt(index);
}

const scopeSchema = z.enum(SCOPES, { error: ({ input }) => unknown('scope', input, SCOPES) });
const operationSchema = z.enum(OPERATIONS, { error: ({ input }) => unknown('operation', input, OPERATIONS) });

export const ruleSchema = z
  .strictObject({
    effect: z.enum(['allow', 'deny'], { error: (issue) => `effect is allow or deny, not ${quote(issue.input)}` }),
    scopes: nonEmptyList(scopeSchema, MAX_NAMES_PER_RULE).exactOptional(),
    keys: nonEmptyList(publicKeySchema, MAX_KEYS_PER_RULE).exactOptional(),
    operations: nonEmptyList(operationSchema, MAX_NAMES_PER_RULE).exactOptional(),
    fee_recipients: nonEmptyList(feeRecipientSchema, MAX_FEE_RECIPIENTS_PER_RULE).exactOptional(),
    /** Far more than any block has: a JSON number stays exact up to 2^53 - 1. */
    max_gas_limit: z.int('must be a whole number, without quotes').min(1, 'must be at least 1').exactOptional(),
    builders: nonEmptyList(builderSchema, MAX_BUILDERS_PER_RULE).exactOptional(),
    builder_indices: nonEmptyList(builderIndexSchema, MAX_BUILDERS_PER_RULE).exactOptional(),
    only_for_own_blocks: z.literal(true, 'is true, or left out').exactOptional(),
  })
  // What a deny rule with it would refuse is what the signer itself made.
  .refine(({ effect, only_for_own_blocks: own }) => own === undefined || effect === 'allow', {
    path: ['only_for_own_blocks'],
    message: 'stands in allow rules only',
  });

export const policyRulesSchema = z.strictObject({
  rules: z
    .array(ruleSchema)
    .min(1, 'a policy has at least one rule')
    .max(MAX_RULES_PER_POLICY, `a policy has at most ${MAX_RULES_PER_POLICY} rules`),
});

export const policySchema = z.strictObject({ name: policyNameSchema, ...policyRulesSchema.shape });

/** The ranges are only bounded here: auth/cidr.ts decides whether they are well-formed and safe. */
export const tokenRequestSchema = z
  .strictObject({
    policies: z.array(policyNameSchema).max(MAX_POLICIES_PER_TOKEN).default([]),
    ttl_seconds: z.int().min(1).max(MAX_TTL_SECONDS).exactOptional(),
    bound_cidrs: z.array(z.string().max(MAX_CIDR_CHARACTERS)).max(MAX_CIDRS_PER_TOKEN).default([]),
    management: z.boolean().default(false),
    description: z.string().max(MAX_DESCRIPTION_CHARACTERS).exactOptional(),
  })
  .refine((request) => !request.management || request.bound_cidrs.length === 0, {
    path: ['bound_cidrs'],
    message: 'a management token is never bound to source networks',
  })
  .refine((request) => request.management || request.policies.length > 0, {
    path: ['policies'],
    message: 'a client token is bound to at least one policy',
  });

export const renewRequestSchema = z.strictObject({ ttl_seconds: z.int().min(1).max(MAX_TTL_SECONDS).exactOptional() });

export type Rule = DeepReadonly<z.output<typeof ruleSchema>>;
export type Policy = DeepReadonly<z.output<typeof policySchema>>;
export type TokenRequest = z.output<typeof tokenRequestSchema>;

type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

function nonEmptyList<Item extends z.ZodType>(item: Item, max: number): z.ZodArray<Item> {
  return z
    .array(item)
    .min(1, 'an empty list matches nothing: leave it out to match everything')
    .max(max, `a list of at most ${max}`);
}

function unknown(what: string, written: unknown, known: readonly string[]): string {
  const wanted = typeof written === 'string' ? written : '';
  // Operations are all in upper case, scopes in lower.
  const inTheirCase = known[0] === known[0]?.toUpperCase() ? wanted.toUpperCase() : wanted.toLowerCase();
  const near = known.find((name) => name === inTheirCase) ?? nearest(inTheirCase, known);
  const question = near === undefined ? '' : `, did you mean ${near}?`;
  return `unknown ${what} ${quote(written)}${question} (${what}s: ${known.join(', ')})`;
}

function quote(value: unknown): string {
  if (typeof value !== 'string') return `of type ${value === null ? 'null' : typeof value}`;
  const shown = value.length > MAX_QUOTED_CHARACTERS ? `${value.slice(0, MAX_QUOTED_CHARACTERS)}…` : value;
  return JSON.stringify(shown);
}
