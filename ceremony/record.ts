// The MASTER_KEY record: the shares of the master key as the custody keys encrypted them, and the share binding, an HMAC
// under a key derived from the master key itself (decisions.md section 7). The text is whatever the table returned: it is
// refused unless every member has its exact form, and trusted only after the binding of the opened master key verifies.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { MAX_CUSTODY_KEYS, MAX_GENERATION, MAX_REPLICAS } from './definition.ts';
import { parseKeyArn } from './key-arn.ts';
import { deriveSubKey } from './sub-key.ts';

export const RECORD_VERSION = 1;
const BINDING_BYTES = 32;
/** AWS KMS API Reference, Decrypt: CiphertextBlob. */
export const MAX_CIPHERTEXT_BYTES = 6144;
const BINDING_INFO = 'strongroom/share-binding/v1';

export interface WrappedShare {
  /** From one, in order. */
  readonly index: number;
  /** Of its custody key, ascending. */
  readonly arns: readonly string[];
  readonly ciphertext: Buffer;
}

export interface UnboundRecord {
  readonly version: typeof RECORD_VERSION;
  readonly generation: number;
  readonly threshold: number;
  readonly shares: readonly WrappedShare[];
}

export interface MasterKeyRecord extends UnboundRecord {
  readonly binding: Buffer;
}

/** Sub-key of the master key for the share binding: HKDF-SHA256 without a salt. The caller's to wipe. */
export function shareBindingKey(masterKey: Buffer): Buffer {
  return deriveSubKey(masterKey, BINDING_INFO);
}

/** HMAC-SHA256 over every member but the binding, each number as 32 bits big endian and each text or blob behind its length. */
export function shareBinding(bindingKey: Buffer, record: UnboundRecord): Buffer {
  const hmac = createHmac('sha256', bindingKey);
  const number = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    hmac.update(bytes);
  };
  const blob = (bytes: Buffer) => {
    number(bytes.length);
    hmac.update(bytes);
  };
  for (const value of [record.version, record.generation, record.threshold, record.shares.length]) number(value);
  for (const { index, arns, ciphertext } of record.shares) {
    number(index);
    number(arns.length);
    for (const arn of [...arns].sort()) blob(Buffer.from(arn, 'utf8'));
    blob(ciphertext);
  }
  return hmac.digest();
}

export function bindRecord(masterKey: Buffer, record: UnboundRecord): MasterKeyRecord {
  const bindingKey = shareBindingKey(masterKey);
  try {
    return { ...record, binding: shareBinding(bindingKey, record) };
  } finally {
    bindingKey.fill(0);
  }
}

export function bindingVerifies(masterKey: Buffer, record: MasterKeyRecord): boolean {
  const bindingKey = shareBindingKey(masterKey);
  try {
    return timingSafeEqual(shareBinding(bindingKey, record), record.binding);
  } finally {
    bindingKey.fill(0);
  }
}

/** One line of JSON, which `parseRecord` reads back. */
export function serializeRecord({ version, generation, threshold, shares, binding }: MasterKeyRecord): string {
  const written = shares.map(({ index, arns, ciphertext }) => ({
    index,
    arns,
    ciphertext: ciphertext.toString('base64'),
  }));
  return JSON.stringify({ version, generation, threshold, shares: written, binding: binding.toString('base64') });
}

/** @returns undefined for anything that `serializeRecord` does not write: startup failure 9, see `malformedRecord` */
export function parseRecord(text: string): MasterKeyRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return recordSchema.safeParse(value).data;
}

const keyIdOf = (arn: string) => parseKeyArn(arn)?.keyId ?? arn;

const bytesSchema = (minimum: number, maximum: number) =>
  z
    .string()
    .max(Math.ceil(maximum / 3) * 4)
    .transform((text) => ({ text, bytes: Buffer.from(text, 'base64') }))
    // One spelling only: Node's decoder also takes what is not base64.
    .refine(({ text, bytes }) => bytes.toString('base64') === text)
    .transform(({ bytes }) => bytes)
    .refine((bytes) => bytes.length >= minimum && bytes.length <= maximum);

const arnsSchema = z
  .array(z.string().refine((arn) => parseKeyArn(arn) !== undefined, { abort: true }))
  .min(1)
  .max(MAX_REPLICAS)
  .refine((arns) => arns.every((arn, at) => at === 0 || (arns[at - 1] ?? '') < arn))
  .refine((arns) => new Set(arns.map((arn) => keyIdOf(arn))).size === 1);

const recordSchema = z
  .strictObject({
    version: z.literal(RECORD_VERSION),
    generation: z.int().min(1).max(MAX_GENERATION),
    threshold: z.int().min(1).max(MAX_CUSTODY_KEYS),
    shares: z
      .array(z.strictObject({ index: z.int(), arns: arnsSchema, ciphertext: bytesSchema(1, MAX_CIPHERTEXT_BYTES) }))
      .min(1)
      .max(MAX_CUSTODY_KEYS)
      .refine((shares) => shares.every(({ index }, at) => index === at + 1))
      // A key that holds two shares would count twice towards the threshold.
      .refine((shares) => new Set(shares.map(({ arns: [arn = ''] }) => keyIdOf(arn))).size === shares.length),
    binding: bytesSchema(BINDING_BYTES, BINDING_BYTES),
  })
  .refine(({ threshold, shares }) => threshold <= shares.length);
