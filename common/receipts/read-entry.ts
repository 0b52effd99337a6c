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

/** @throws RangeError for bytes of another form, as Buffer does past its end */
function read(bytes: Buffer): ReceiptEntry {
  demand(bytes.readUInt8(0) === VERSION);
  const outcome = bytes.readUInt8(1);
  demand(outcome === 1 || outcome === 2);
  const timeMs = readNumber(bytes, 2);
  demand(timeMs <= MAX_TIME_MS);
  const operation = readText(bytes, 10);
  demand(OPERATION.test(operation));
  let at = 11 + operation.length;
  const reason = readText(bytes, at);
  demand(outcome === 1 ? reason === '' : REASON.test(reason));
  at += 1 + reason.length;
  const publicKey = readBytes(bytes, at, PUBLIC_KEY_BYTES);
  at += PUBLIC_KEY_BYTES;
  const present = bytes.readUInt8(at);
  demand(present < 1 << POSITIONS.length);
  at += 1;
  const position: Partial<Record<(typeof POSITIONS)[number], number>> = {};
  for (const [bit, name] of POSITIONS.entries()) {
    if ((present & (1 << bit)) === 0) continue;
    position[name] = readNumber(bytes, at);
    at += 8;
  }
  const hasRoot = bytes.readUInt8(at);
  demand(hasRoot === 1 || (hasRoot === 0 && outcome === 2));
  at += 1;
  const signingRoot = hasRoot === 1 ? readBytes(bytes, at, DIGEST_BYTES) : null;
  if (signingRoot !== null) at += DIGEST_BYTES;
  const caller = readBytes(bytes, at, DIGEST_BYTES);
  demand(bytes.length === at + DIGEST_BYTES);
  return { timeMs, operation, reason: outcome === 1 ? null : reason, publicKey, position, signingRoot, caller };
}

function readBytes(bytes: Buffer, at: number, length: number): Buffer {
  demand(bytes.length >= at + length);
  return bytes.subarray(at, at + length);
}

function readText(bytes: Buffer, at: number): string {
  return readBytes(bytes, at + 1, bytes.readUInt8(at)).toString('latin1');
}

function readNumber(bytes: Buffer, at: number): number {
  const value = bytes.readBigUInt64BE(at);
  demand(value <= BigInt(Number.MAX_SAFE_INTEGER));
  return Number(value);
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
