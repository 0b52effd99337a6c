// What the key table holds (specification/tables.md#key-table). Whether a row's content is ours key-cipher.ts says.

import { createHash, hash } from 'node:crypto';
import { canonicalPublicKey } from '../../../common/formats/hex.ts';
import type { AttributeValue, Item } from '../../aws/dynamodb.ts';
import type { KeyStatus } from './types.ts';

export const SHARDS = Array.from({ length: 16 }, (_, shard) => shard);

export interface TableRow {
  readonly publicKey: string;
  readonly status: KeyStatus;
  readonly generation: number;
  /** As `Date.toISOString` writes it, so that its length is fixed. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The digest of backup and deposit, so that a load can do without reading these. */
  readonly detailsDigest: Buffer;
  readonly encryptedSecret: Buffer;
  readonly backup: string | undefined;
  readonly deposit: string | undefined;
}

type DecodedRow =
  | { readonly row: TableRow }
  | { readonly refused: string; readonly publicKey: string; readonly generation: number | undefined };

/** The first nibble of the SHA-256 of the public key's bytes. @param publicKey canonical */
export function shardOf(publicKey: string): number {
  const [first = 0] = hash('sha256', Buffer.from(publicKey.slice(2), 'hex'), 'buffer');
  return first >> 4;
}

export function shardPartition(shard: number): string {
  return `KEYS#${String(shard).padStart(2, '0')}`;
}

export function keyOfRow(publicKey: string): Item {
  return { pk: { S: shardPartition(shardOf(publicKey)) }, sk: { S: publicKey } };
}

const REVISION = 'REVISION';

export function keyOfRevision(shard: number): Item {
  return { pk: { S: shardPartition(shard) }, sk: { S: REVISION } };
}

export function revisionIn(item: Item | undefined): number {
  return item === undefined ? 0 : (wholeNumber(item['revision']) ?? 0);
}

export function encodeRow(row: TableRow): Item {
  return {
    ...keyOfRow(row.publicKey),
    status: { S: row.status },
    generation: { N: String(row.generation) },
    created_at: { S: row.createdAt },
    updated_at: { S: row.updatedAt },
    details_digest: { B: row.detailsDigest },
    secret: { B: row.encryptedSecret },
    ...(row.backup === undefined ? {} : { backup: { S: row.backup } }),
    ...(row.deposit === undefined ? {} : { deposit: { S: row.deposit } }),
  };
}

export const LOAD_PROJECTION = {
  ProjectionExpression: 'pk, sk, #status, generation, created_at, updated_at, details_digest, #secret',
  ExpressionAttributeNames: { '#status': 'status', '#secret': 'secret' },
};

export function decodeRow(item: Item): DecodedRow {
  const publicKey = item['sk']?.S ?? '';
  const status = item['status']?.S;
  const generation = wholeNumber(item['generation']);
  const createdAt = item['created_at']?.S ?? '';
  const updatedAt = item['updated_at']?.S ?? '';
  const detailsDigest = item['details_digest']?.B;
  const encryptedSecret = item['secret']?.B;
  const refuse = (refused: string): DecodedRow => ({ refused, publicKey, generation });
  if (canonicalPublicKey(publicKey) !== publicKey) return refuse('sk is not a public key');
  if (item['pk']?.S !== shardPartition(shardOf(publicKey))) return refuse('in the shard of other keys');
  if (status !== 'active' && status !== 'inactive') return refuse('status is neither active nor inactive');
  if (generation === undefined) return refuse('generation is not a whole number');
  if (!TIME.test(createdAt) || !TIME.test(updatedAt)) return refuse('created_at or updated_at is not a time');
  if (detailsDigest?.length !== DIGEST_BYTES) return refuse('details_digest is not 32 bytes');
  if (encryptedSecret === undefined) return refuse('secret is missing');
  return {
    row: {
      publicKey,
      status,
      generation,
      createdAt,
      updatedAt,
      detailsDigest: asBuffer(detailsDigest),
      encryptedSecret: asBuffer(encryptedSecret),
      backup: item['backup']?.S,
      deposit: item['deposit']?.S,
    },
  };
}

export function digestOfDetails(backup: string | undefined, deposit: string | undefined): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([backup ?? null, deposit ?? null]))
    .digest();
}

const DIGEST_BYTES = 32;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function wholeNumber(value: AttributeValue | undefined): number | undefined {
  const number = Number(value?.N ?? Number.NaN);
  return Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}
