// One decision of a signer as the bytes of a log's leaf (specification/receipts.md#entry). It refuses a member
// that has no place there. What reads one is apart (read-entry.ts), because no signer does.

import { createHash } from 'node:crypto';
import { MAX_TIME_MS } from './head.ts';

export const MAX_ENTRY_BYTES = 320;
export const ENTRY_VERSION = 1;
export const ENTRY_KEY_BYTES = 48;
export const DIGEST_BYTES = 32;
const MAX_WORD_CHARACTERS = 64;
export const POSITIONS = ['slot', 'epoch', 'sourceEpoch', 'targetEpoch'] as const;
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

/**
 * On the path of every signature, so it makes no object: numbers, texts and digests go straight into the bytes.
 * @param bytes with room for an entry from `at` on
 * @returns where the entry ends
 * @throws RangeError for a member that has no place in an entry: a bug of the caller; then the bytes from `at` on are
 * worth nothing
 */
export function writeEntry(entry: Omit<ReceiptEntry, 'timeMs'>, timeMs: number, bytes: Buffer, at: number): number {
  const { operation, reason, publicKey, position, signingRoot, caller } = entry;
  demandEntry(timeMs <= MAX_TIME_MS);
  demandEntry(publicKey.length === ENTRY_KEY_BYTES && caller.length === DIGEST_BYTES);
  demandEntry(signingRoot === null ? reason !== null : signingRoot.length === DIGEST_BYTES);
  bytes[at] = ENTRY_VERSION;
  bytes[at + 1] = reason === null ? 1 : 2;
  let end = writeNumber(bytes, timeMs, at + 2);
  end = writeWord(bytes, operation, 'A', end);
  end = reason === null ? writeByte(bytes, 0, end) : writeWord(bytes, reason, 'a', end);
  bytes.set(publicKey, end);
  end += ENTRY_KEY_BYTES;
  const presentAt = end;
  let present = 0;
  end += 1;
  for (let bit = 0; bit < POSITIONS.length; bit++) {
    const value = position[POSITIONS[bit] ?? 'slot'];
    if (value === undefined) continue;
    present += 1 << bit;
    end = writeNumber(bytes, value, end);
  }
  bytes[presentAt] = present;
  end = writeByte(bytes, signingRoot === null ? 0 : 1, end);
  if (signingRoot !== null) {
    bytes.set(signingRoot, end);
    end += DIGEST_BYTES;
  }
  bytes.set(caller, end);
  return end + DIGEST_BYTES;
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

export function demandEntry(condition: boolean): void {
  if (!condition) throw new RangeError('no entry');
}

/** Its length and itself: 1 to 64 letters from `first` on, digits and `_`. */
function writeWord(bytes: Buffer, word: string, first: 'A' | 'a', at: number): number {
  demandEntry(word.length >= 1 && word.length <= MAX_WORD_CHARACTERS);
  const letters = first.charCodeAt(0);
  bytes[at] = word.length;
  for (let index = 0; index < word.length; index++) {
    const code = word.charCodeAt(index);
    const isLetter = code >= letters && code < letters + 26;
    demandEntry(isLetter || (code >= 0x30 && code <= 0x39) || code === 0x5f);
    bytes[at + 1 + index] = code;
  }
  return at + 1 + word.length;
}

function writeByte(bytes: Buffer, value: number, at: number): number {
  bytes[at] = value;
  return at + 1;
}

/** As two halves: a BigInt would be an object. */
function writeNumber(bytes: Buffer, value: number, at: number): number {
  demandEntry(Number.isSafeInteger(value) && value >= 0);
  bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  return bytes.writeUInt32BE(value % 2 ** 32, at + 4);
}
