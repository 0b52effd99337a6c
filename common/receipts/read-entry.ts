// An entry of the log, read from its bytes: apart from entry.ts because a signer reads none. Other bytes are refused.

import {
  DIGEST_BYTES,
  demandEntry,
  ENTRY_KEY_BYTES,
  ENTRY_VERSION,
  MAX_ENTRY_BYTES,
  POSITIONS,
  type ReceiptEntry,
} from './entry.ts';
import { MAX_TIME_MS } from './head.ts';

const OPERATION = /^[A-Z0-9_]{1,64}$/;
const REASON = /^[a-z0-9_]{1,64}$/;

/** Undefined for bytes that are no entry. */
export function decodeEntry(bytes: Uint8Array): ReceiptEntry | undefined {
  if (bytes.length > MAX_ENTRY_BYTES) return undefined;
  try {
    return read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** @throws RangeError for bytes of another form */
function read(bytes: Buffer): ReceiptEntry {
  let at = 0;
  const take = (length: number): Buffer => {
    demandEntry(bytes.length >= at + length);
    at += length;
    return bytes.subarray(at - length, at);
  };
  const byte = (): number => take(1).readUInt8();
  const word = (): string => take(byte()).toString('latin1');
  const number = (): number => {
    const value = take(8).readBigUInt64BE();
    demandEntry(value <= BigInt(Number.MAX_SAFE_INTEGER));
    return Number(value);
  };
  demandEntry(byte() === ENTRY_VERSION);
  const outcome = byte();
  demandEntry(outcome === 1 || outcome === 2);
  const timeMs = number();
  demandEntry(timeMs <= MAX_TIME_MS);
  const operation = word();
  demandEntry(OPERATION.test(operation));
  const reason = word();
  demandEntry(outcome === 1 ? reason === '' : REASON.test(reason));
  const publicKey = take(ENTRY_KEY_BYTES);
  const present = byte();
  demandEntry(present < 1 << POSITIONS.length);
  const position: Partial<Record<(typeof POSITIONS)[number], number>> = {};
  for (const [bit, name] of POSITIONS.entries()) if ((present & (1 << bit)) !== 0) position[name] = number();
  const hasRoot = byte();
  demandEntry(hasRoot === 1 || (hasRoot === 0 && outcome === 2));
  const signingRoot = hasRoot === 1 ? take(DIGEST_BYTES) : null;
  const caller = take(DIGEST_BYTES);
  demandEntry(at === bytes.length);
  return { timeMs, operation, reason: outcome === 1 ? null : reason, publicKey, position, signingRoot, caller };
}

/** For readers of a log: a signer writes its entries straight into one. @param entries of one tile: at most 256 */
export function encodeBundle(entries: readonly Uint8Array[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(entry.length);
    return [length, entry];
  });
  return Buffer.concat(parts);
}
