// An entry of the log, read from its bytes: apart from entry.ts because a signer reads none. Other bytes are refused.

import {
  DIGEST_BYTES,
  demand,
  MAX_ENTRY_BYTES,
  POSITIONS,
  PUBLIC_KEY_BYTES,
  type ReceiptEntry,
  VERSION,
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
    demand(bytes.length >= at + length);
    at += length;
    return bytes.subarray(at - length, at);
  };
  const byte = (): number => take(1).readUInt8();
  const word = (): string => take(byte()).toString('latin1');
  const number = (): number => {
    const value = take(8).readBigUInt64BE();
    demand(value <= BigInt(Number.MAX_SAFE_INTEGER));
    return Number(value);
  };
  demand(byte() === VERSION);
  const outcome = byte();
  demand(outcome === 1 || outcome === 2);
  const timeMs = number();
  demand(timeMs <= MAX_TIME_MS);
  const operation = word();
  demand(OPERATION.test(operation));
  const reason = word();
  demand(outcome === 1 ? reason === '' : REASON.test(reason));
  const publicKey = take(PUBLIC_KEY_BYTES);
  const present = byte();
  demand(present < 1 << POSITIONS.length);
  const position: Partial<Record<(typeof POSITIONS)[number], number>> = {};
  for (const [bit, name] of POSITIONS.entries()) if ((present & (1 << bit)) !== 0) position[name] = number();
  const hasRoot = byte();
  demand(hasRoot === 1 || (hasRoot === 0 && outcome === 2));
  const signingRoot = hasRoot === 1 ? take(DIGEST_BYTES) : null;
  const caller = take(DIGEST_BYTES);
  demand(at === bytes.length);
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
