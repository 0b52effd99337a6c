// The leaves of the consensus messages as clients write them (specification/signing.md#bodies). None of the schemas
// rounds, truncates or pads. The JSON schema of each is given by hand, because a transform has none.

import { z } from 'zod';
import { decodeHex, decodeLongHex } from '../../common/formats/hex.ts';
import { explainIssue } from '../../common/formats/issues.ts';

const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_UINT256 = 2n ** 256n - 1n;
const DECIMAL = /^[0-9]{1,20}$/;
const LONG_DECIMAL = /^[0-9]{1,78}$/;

export interface Bits {
  readonly bytes: Uint8Array;
  readonly length: number;
}

/** base_fee_per_gas: the one number of a message that is larger than a uint64. */
export const uint256 = leaf(
  'a uint256, as a decimal string or an integer',
  readUint256,
  decimal('uint256 as a decimal string, or as a JSON number up to 2^53 - 1', 78),
);

export const boolean = leaf('true or false', (value) => (typeof value === 'boolean' ? value : undefined), {
  type: 'boolean',
});

export const uint64 = leaf(
  'a uint64, as a decimal string or an integer',
  readUint64,
  decimal('uint64 as a decimal string, or as a JSON number up to 2^53 - 1', 20),
);

/** Larger ones are uint64 too, but in the slashing record one of them would refuse the key every later message. */
export const slotOrEpoch = leaf(
  'a slot or epoch of at most 2^53 - 1, as a decimal string or an integer',
  readSlotOrEpoch,
  decimal('slot or epoch, at most 2^53 - 1, as a decimal string or a JSON number', 20),
);

function decimal(description: string, digits: number) {
  const text = { type: 'string', pattern: `^[0-9]{1,${digits}}$` } as const;
  const number = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
  return { anyOf: [text, number], description, examples: ['12'] };
}

export const forkVersion = bytes(4);
export const root = bytes(32);
export const address = bytes(20);
/** Opaque: never checked for being a point of the curve (specification/signing.md#bodies). */
export const publicKey = bytes(48);
export const signature = bytes(96);

export function bytes(...lengths: readonly number[]) {
  const expected = `hex of ${lengths.join(' or ')} bytes`;
  return leaf(
    expected,
    (value) => {
      const decoded = typeof value === 'string' ? decodeHex(value) : undefined;
      return decoded !== undefined && lengths.includes(decoded.length) ? decoded : undefined;
    },
    {
      type: 'string',
      pattern: `^(0[xX])?(${lengths.map((length) => `[0-9a-fA-F]{${length * 2}}`).join('|')})$`,
      description: `${expected}, with or without 0x, in any case`,
    },
  );
}

/** Hex of an SSZ `ByteList[limit]`, of at least `min` bytes; without a limit as long as a body may be. */
export function byteList(limit = Number.POSITIVE_INFINITY, min = 0) {
  const most = min === 0 ? `at most ${limit}` : `${min} to ${limit}`;
  const expected = limit === Number.POSITIVE_INFINITY ? 'hex' : `hex of ${most} bytes`;
  return leaf(
    expected,
    (value) => {
      const decoded = typeof value === 'string' ? decodeLongHex(value) : undefined;
      return decoded !== undefined && decoded.length >= min && decoded.length <= limit ? decoded : undefined;
    },
    {
      type: 'string',
      pattern: min === 0 ? '^(0[xX])?([0-9a-fA-F]{2})*$' : `^(0[xX])?([0-9a-fA-F]{2}){${min},}$`,
      description: `${expected}, with or without 0x, in any case`,
    },
  );
}

export function bitlist(limit: number) {
  const expected = `hex of an SSZ Bitlist of at most ${limit} bits`;
  return leaf(expected, (value) => readBitlist(value, limit), {
    type: 'string',
    pattern: '^(0[xX])?([0-9a-fA-F]{2})+$',
    description: `${expected}, with its length bit`,
  });
}

export function list<T extends z.ZodType>(item: T, limit: number) {
  return items(item, 0, limit);
}

export function vector<T extends z.ZodType>(item: T, length: number) {
  return items(item, length, length);
}

export function delegate<T extends z.ZodType>(
  schema: T,
  value: unknown,
  context: z.RefinementCtx,
  path: readonly PropertyKey[] = [],
): z.output<T> {
  const result = schema.safeParse(value, { error: explainIssue });
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    context.issues.push({ ...issue, path: [...path, ...issue.path], input: value } as z.core.$ZodRawIssue);
  }
  return z.NEVER;
}

/** The JSON schema of what a schema takes, for `meta` of one that cannot show it by itself. */
export function inputJsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input' });
  return described;
}

export function upperCaseWord(text: unknown): string | undefined {
  // ASCII only: toUpperCase alone would take `ı` for an I.
  return typeof text === 'string' && /^[A-Za-z0-9_]{1,64}$/.test(text) ? text.toUpperCase() : undefined;
}

export function refuseValue(context: z.RefinementCtx, input: unknown, message: string, reason?: string): never {
  context.issues.push({ code: 'custom', message, input, ...(reason === undefined ? {} : { params: { reason } }) });
  return z.NEVER;
}

/** Unlike z.array it checks the length first and stops at the first bad item: junk costs no more than what is good. */
function items<T extends z.ZodType>(item: T, min: number, max: number) {
  const expected = `expected an array of ${min === max ? '' : 'at most '}${max} items`;
  return z
    .unknown()
    .transform((value, context): z.output<T>[] => {
      if (!Array.isArray(value) || value.length < min || value.length > max)
        return refuseValue(context, value, expected);
      const parsed: z.output<T>[] = [];
      for (const [index, element] of value.entries()) {
        parsed.push(delegate(item, element, context, [index]));
        if (context.issues.length > 0) return z.NEVER;
      }
      return parsed;
    })
    .meta(inputJsonSchema(z.array(item).min(min).max(max)));
}

function leaf<T>(expected: string, read: (value: unknown) => T | undefined, jsonSchema: Record<string, unknown>) {
  return z
    .unknown()
    .transform((value, context): T => {
      if (value === undefined) return refuseValue(context, value, 'is missing');
      const result = read(value);
      return result === undefined ? refuseValue(context, value, `expected ${expected}`) : result;
    })
    .meta(jsonSchema);
}

export function readUint64(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
  if (typeof value !== 'string' || !DECIMAL.test(value)) return undefined;
  const number = BigInt(value);
  return number <= MAX_UINT64 ? number : undefined;
}

function readUint256(value: unknown): bigint | undefined {
  if (typeof value !== 'string' || !LONG_DECIMAL.test(value)) return readUint64(value);
  const number = BigInt(value);
  return number <= MAX_UINT256 ? number : undefined;
}

export function readSlotOrEpoch(value: unknown): number | undefined {
  const number = typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value;
  // A decimal string that Number() rounds is at least 2^53 and so not a safe integer either.
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function readBitlist(value: unknown, limit: number): Bits | undefined {
  const encoded = typeof value === 'string' ? decodeHex(value) : undefined;
  const last = encoded?.at(-1);
  if (encoded === undefined || last === undefined || last === 0) return undefined;
  const bitsOfLast = 31 - Math.clz32(last);
  const length = (encoded.length - 1) * 8 + bitsOfLast;
  if (length > limit) return undefined;
  const bits = encoded.subarray(0, Math.ceil(length / 8));
  if (bitsOfLast > 0) bits[bits.length - 1] = last ^ (1 << bitsOfLast);
  return { bytes: bits, length };
}

/** Memory of request bodies at most, over all connections. No single body may be allowed to be larger. */
export const BODY_BUDGET_BYTES = 256 * 1024 * 1024;

/** The gossip limit (specification/signing.md#gloas), also where max_request_body_bytes is smaller. */
export const MAX_ENVELOPE_BODY_BYTES = 10 * 1024 * 1024;

/** MAX_BUILDER_AUTH_DATA_SIZE of the builder specification. */
export const MAX_BUILDER_AUTH_BYTES = 4096;

export const MAX_SEAL_REASON_CHARACTERS = 512;
