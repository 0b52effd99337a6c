// One decision of a signer as the bytes of a log's leaf (specification/receipts.md#entry). It trusts nothing: bytes of
// another form are refused, so an entry has one spelling, and the digest of its bytes is the digest of the decision.

import { createHash } from 'node:crypto';
import { MAX_TIME_MS } from './head.ts';

export const MAX_ENTRY_BYTES = 320;
export const VERSION = 1;
export const PUBLIC_KEY_BYTES = 48;
export const DIGEST_BYTES = 32;
/** Version, outcome, time, two lengths, key, which positions, whether a root follows, caller. */
const FIXED_BYTES = 1 + 1 + 8 + 1 + 1 + PUBLIC_KEY_BYTES + 1 + 1 + DIGEST_BYTES;
export const POSITIONS = ['slot', 'epoch', 'sourceEpoch', 'targetEpoch'] as const;
export const OPERATION = /^[A-Z0-9_]{1,64}$/;
export const REASON = /^[a-z0-9_]{1,64}$/;
const CALLER_TAG = Buffer.from('strongroom caller v1\0');

export interface ReceiptEntry {
  readonly timeMs: number;
  readonly operation: string;
  /** Why it was refused; null: it was signed. */
  readonly reason: string | null;
  readonly publicKey: Uint8Array;
  readonly position: Readonly<Partial<Record<(typeof POSITIONS)[number], number>>>;
  /** Null when it was refused before there was one. */
  readonly signingRoot: Uint8Array | null;
  /** callerDigest() of who asked. */
  readonly caller: Uint8Array;
}

/** @throws RangeError for a member that has no place in an entry: a bug of the caller */
export function encodeEntry(entry: ReceiptEntry): Buffer {
  return encodeLeaf(entry).subarray(1);
}

/**
 * 00 and the entry, as a log hashes it (RFC 9162 §2.1.1): on the path of every signature, so nothing is written twice.
 * @throws RangeError as encodeEntry
 */
export function encodeLeaf({
  timeMs,
  operation,
  reason,
  publicKey,
  position,
  signingRoot,
  caller,
}: ReceiptEntry): Buffer {
  const positions = POSITIONS.filter((name) => position[name] !== undefined);
  demand(timeMs <= MAX_TIME_MS && OPERATION.test(operation) && (reason === null || REASON.test(reason)));
  demand(publicKey.length === PUBLIC_KEY_BYTES && caller.length === DIGEST_BYTES);
  demand(signingRoot === null ? reason !== null : signingRoot.length === DIGEST_BYTES);
  const fixed = FIXED_BYTES + positions.length * 8 + (signingRoot === null ? 0 : DIGEST_BYTES);
  const leaf = Buffer.allocUnsafe(1 + fixed + operation.length + (reason?.length ?? 0));
  let at = leaf.writeUInt8(0, 0);
  at = leaf.writeUInt8(VERSION, at);
  at = leaf.writeUInt8(reason === null ? 1 : 2, at);
  at = writeNumber(leaf, timeMs, at);
  at = writeText(leaf, operation, at);
  at = writeText(leaf, reason ?? '', at);
  leaf.set(publicKey, at);
  at = leaf.writeUInt8(
    positions.reduce((sum, name) => sum + (1 << POSITIONS.indexOf(name)), 0),
    at + PUBLIC_KEY_BYTES,
  );
  for (const name of positions) at = writeNumber(leaf, position[name] ?? 0, at);
  at = leaf.writeUInt8(signingRoot === null ? 0 : 1, at);
  if (signingRoot !== null) leaf.set(signingRoot, at);
  leaf.set(caller, leaf.length - DIGEST_BYTES);
  return leaf;
}

/**
 * Who asked, as a digest that a published log may show.
 * @param name of the token; empty for an anonymous caller
 */
export function callerDigest(name: string, policies: readonly string[]): Buffer {
  const hash = createHash('sha256').update(CALLER_TAG);
  const sorted = policies.map((policy) => Buffer.from(policy)).sort(Buffer.compare);
  for (const text of [Buffer.from(name), ...sorted]) {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(text.length);
    hash.update(length).update(text);
  }
  return hash.digest();
}

export function demand(condition: boolean): void {
  if (!condition) throw new RangeError('no entry');
}

function writeText(bytes: Buffer, text: string, at: number): number {
  demand(text.length <= 64);
  return bytes.writeUInt8(text.length, at) + bytes.write(text, at + 1, 'latin1');
}

function writeNumber(bytes: Buffer, value: number, at: number): number {
  demand(Number.isSafeInteger(value) && value >= 0);
  return bytes.writeBigUInt64BE(BigInt(value), at);
}
