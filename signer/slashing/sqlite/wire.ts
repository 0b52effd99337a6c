// What the main thread and the database worker say to each other besides the calls (database-worker.ts): the replies,
// and a batch of checks as one transferable buffer each way, in records of a fixed size, so that no request costs a
// structured clone of its own.

import { strict as assert } from 'node:assert';
import { SLASHING_KEY_FAULTS, SLASHING_REFUSALS } from '../../api/errors.ts';
import type { KeyFault, Marks, SlashableMessage, SlashingRefusal, SlashingVerdict } from '../types.ts';
import type { FileName } from './file/open-files.ts';

const PUBLIC_KEY_BYTES = 48;
const ROOT_BYTES = 32;
const NUMBER_BYTES = 8;
// A record: a byte for the kind, public key, two numbers, root, three floors, tenure. Numbers: doubles, -1 for none.
const KIND = 0;
const PUBLIC_KEY = KIND + 1;
const FIRST = PUBLIC_KEY + PUBLIC_KEY_BYTES;
const SECOND = FIRST + NUMBER_BYTES;
const ROOT = SECOND + NUMBER_BYTES;
const BLOCK_FLOOR = ROOT + ROOT_BYTES;
const SOURCE_FLOOR = BLOCK_FLOOR + NUMBER_BYTES;
const TARGET_FLOOR = SOURCE_FLOOR + NUMBER_BYTES;
const TENURE = TARGET_FLOOR + NUMBER_BYTES;
const RECORD_BYTES = TENURE + NUMBER_BYTES;
const BLOCK = 0;
const ATTESTATION = 1;
const NONE = -1;

/** A message as the worker sees it: the public key in bytes. The arrays are views into the batch. */
export interface PackedCheck {
  readonly publicKey: Uint8Array;
  readonly message: SlashableMessage;
  readonly floors: Marks;
}

export function packBatch(messages: readonly SlashableMessage[], floors: readonly Marks[]): ArrayBuffer {
  const memory = new ArrayBuffer(messages.length * RECORD_BYTES);
  const buffer = Buffer.from(memory);
  const numbers = new DataView(memory);
  let at = 0;
  for (const message of messages) {
    const isBlock = message.kind === 'block';
    buffer[at + KIND] = isBlock ? BLOCK : ATTESTATION;
    const written = buffer.write(message.publicKey.slice(2), at + PUBLIC_KEY, PUBLIC_KEY_BYTES, 'hex');
    assert.equal(written, PUBLIC_KEY_BYTES, 'a public key is 48 bytes');
    numbers.setFloat64(at + FIRST, isBlock ? message.slot : message.sourceEpoch, true);
    numbers.setFloat64(at + SECOND, isBlock ? NONE : message.targetEpoch, true);
    assert.equal(message.signingRoot.length, ROOT_BYTES, 'a signing root is 32 bytes');
    buffer.set(message.signingRoot, at + ROOT);
    const floor = floors[at / RECORD_BYTES];
    numbers.setFloat64(at + BLOCK_FLOOR, floor?.slot ?? NONE, true);
    numbers.setFloat64(at + SOURCE_FLOOR, floor?.sourceEpoch ?? NONE, true);
    numbers.setFloat64(at + TARGET_FLOOR, floor?.targetEpoch ?? NONE, true);
    numbers.setFloat64(at + TENURE, message.tenure ?? 0, true);
    at += RECORD_BYTES;
  }
  return memory;
}

export function* unpackBatch(memory: ArrayBuffer): Generator<PackedCheck> {
  const bytes = new Uint8Array(memory);
  const numbers = new DataView(memory);
  for (let at = 0; at < bytes.length; at += RECORD_BYTES) {
    const first = numbers.getFloat64(at + FIRST, true);
    const second = numbers.getFloat64(at + SECOND, true);
    const signingRoot = bytes.subarray(at + ROOT, at + ROOT + ROOT_BYTES);
    const tenure = numbers.getFloat64(at + TENURE, true);
    const message: SlashableMessage =
      bytes[at + KIND] === BLOCK
        ? { kind: 'block', publicKey: '', tenure, slot: first, signingRoot }
        : { kind: 'attestation', publicKey: '', tenure, sourceEpoch: first, targetEpoch: second, signingRoot };
    const floors = {
      slot: numberOrNull(numbers.getFloat64(at + BLOCK_FLOOR, true)),
      sourceEpoch: numberOrNull(numbers.getFloat64(at + SOURCE_FLOOR, true)),
      targetEpoch: numberOrNull(numbers.getFloat64(at + TARGET_FLOOR, true)),
    };
    yield { publicKey: bytes.subarray(at + PUBLIC_KEY, at + PUBLIC_KEY + PUBLIC_KEY_BYTES), message, floors };
  }
}

export function packVerdicts(verdicts: readonly SlashingVerdict[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(verdicts, (verdict) => {
    if (verdict.kind === 'safe') return verdict.repeat ? REPEAT : SAFE;
    const place = REASONS.indexOf(verdict.reason);
    assert(place >= 0, 'every reason has a byte');
    return FIRST_REASON + place;
  });
}

/** @throws RangeError for a byte that no verdict has */
export function unpackVerdicts(bytes: Uint8Array): SlashingVerdict[] {
  return Array.from(bytes, (byte) => {
    if (byte === SAFE) return { kind: 'safe', repeat: false };
    if (byte === REPEAT) return { kind: 'safe', repeat: true };
    const reason = REASONS[byte - FIRST_REASON];
    if (reason === undefined) throw new RangeError(`no verdict has the byte ${byte}`);
    return isKeyFault(reason) ? { kind: 'unavailable', reason } : { kind: 'refused', reason };
  });
}

// 0 means nothing: a byte that was never written is no verdict.
const SAFE = 1;
const REPEAT = 2;
const FIRST_REASON = 3;
const REASONS: readonly (SlashingRefusal | KeyFault)[] = [...SLASHING_REFUSALS, ...SLASHING_KEY_FAULTS];

function isKeyFault(reason: SlashingRefusal | KeyFault): reason is KeyFault {
  return (SLASHING_KEY_FAULTS as readonly string[]).includes(reason);
}

function numberOrNull(value: number): number | null {
  return value === NONE ? null : value;
}

export type ReplyMessage =
  | { readonly id: number; readonly result: unknown }
  | {
      readonly id: number;
      readonly reason: 'slashing_unavailable' | 'slashing_integrity';
      readonly error: unknown;
      readonly hint: string | undefined;
    };

export interface DatabaseWorkerData {
  readonly path: string;
  readonly genesisValidatorsRoot: Uint8Array;
  readonly integrityKey: Uint8Array | undefined;
  readonly file: FileName | undefined;
}
