// The MASTER_KEY record (specification/custody.md#share-binding). It is refused unless every member has its exact form,
// and trusted only after the binding of the opened master key verifies.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../common/formats/parse-json.ts';
import {
  type Deployment,
  isDeploymentId,
  isNetwork,
  MAX_CUSTODY_KEYS,
  MAX_GENERATION,
  MAX_REPLICAS,
} from './definition.ts';
import { parseKeyArn } from './key-arn.ts';

const RECORD_VERSION = 2;
const BINDING_BYTES = 32;
/** AWS KMS API Reference, Decrypt: CiphertextBlob. */
const MAX_CIPHERTEXT_BYTES = 6144;
const BINDING_INFO = 'strongroom/share-binding/v1';

export interface WrappedShare {
  readonly index: number;
  readonly arns: readonly string[];
  readonly ciphertext: Buffer;
}

interface RecordContent {
  readonly deployment: Deployment;
  readonly generation: number;
  readonly threshold: number;
  readonly shares: readonly WrappedShare[];
}

export interface MasterKeyRecord extends RecordContent {
  readonly binding: Buffer;
}

/** HMAC-SHA256 over every member but the binding (specification/custody.md#share-binding). */
function shareBinding(bindingKey: Buffer, record: RecordContent): Buffer {
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
  const { deployment } = record;
  number(RECORD_VERSION);
  for (const text of [deployment.network, deployment.id]) blob(Buffer.from(text, 'ascii'));
  for (const value of [record.generation, record.threshold, record.shares.length]) number(value);
  for (const { index, arns, ciphertext } of record.shares) {
    number(index);
    number(arns.length);
    for (const arn of [...arns].sort()) blob(Buffer.from(arn, 'utf8'));
    blob(ciphertext);
  }
  return hmac.digest();
}

export function bindRecord(masterKey: Buffer, record: RecordContent): MasterKeyRecord {
  const bindingKey = deriveSubKey(masterKey, BINDING_INFO);
  try {
    return { ...record, binding: shareBinding(bindingKey, record) };
  } finally {
    bindingKey.fill(0);
  }
}

export function bindingVerifies(masterKey: Buffer, record: MasterKeyRecord): boolean {
  const bindingKey = deriveSubKey(masterKey, BINDING_INFO);
  try {
    return timingSafeEqual(shareBinding(bindingKey, record), record.binding);
  } finally {
    bindingKey.fill(0);
  }
}

export function serializeRecord(record: MasterKeyRecord): string {
  const { deployment, generation, threshold, shares, binding } = record;
  const { network, id } = deployment;
  const written = shares.map(({ index, arns, ciphertext }) => ({
    index,
    arns,
    ciphertext: ciphertext.toString('base64'),
  }));
  const head = { version: RECORD_VERSION, deployment: { network, id }, generation, threshold };
  return JSON.stringify({ ...head, shares: written, binding: binding.toString('base64') });
}

/** @returns undefined for anything that `serializeRecord` does not write */
export function parseRecord(text: string): MasterKeyRecord | undefined {
  return recordSchema.safeParse(parseJson(text)).data;
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

const deploymentSchema = z.strictObject({
  network: z.string().refine(isNetwork),
  id: z.string().refine(isDeploymentId),
});

const recordSchema = z
  .strictObject({
    version: z.literal(RECORD_VERSION),
    deployment: deploymentSchema,
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
  .refine(({ threshold, shares }) => threshold <= shares.length)
  .transform((parsed): MasterKeyRecord => {
    const { version: _, ...record } = parsed;
    return record;
  });

// HKDF-SHA256 without a salt, one `info` a purpose (specification/custody.md#master-key).

const NO_SALT = Buffer.alloc(32);
const FIRST_BLOCK = Buffer.of(1);

/** The caller's to wipe. Not crypto.hkdfSync: that leaves a copy of its input until the garbage collector comes. */
export function deriveSubKey(masterKey: Uint8Array, info: string): Buffer {
  const pseudorandomKey = createHmac('sha256', NO_SALT).update(masterKey).digest();
  const subKey = createHmac('sha256', pseudorandomKey).update(info, 'ascii').update(FIRST_BLOCK).digest();
  pseudorandomKey.fill(0);
  return subKey;
}
