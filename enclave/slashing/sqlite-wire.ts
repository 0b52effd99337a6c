// How a batch of checks travels between the main thread and the database worker: one transferable buffer each way,
// fixed-size records, so that no request costs a structured clone of its own.

import { strict as assert } from 'node:assert';
import type { HighWaterMarks, KeyFault, SlashableMessage, SlashingRefusal, Verdict } from './types.ts';

const PUBLIC_KEY_BYTES = 48;
const ROOT_BYTES = 32;
/** A byte for the kind, public key, two numbers, signing root, three floors; numbers are doubles, -1 for none. */
const RECORD_BYTES = 1 + PUBLIC_KEY_BYTES + 2 * 8 + ROOT_BYTES + 3 * 8;
const BLOCK = 0;
const ATTESTATION = 1;
const NONE = -1;

/** A message as the worker sees it: the public key in bytes. The arrays are views into the batch. */
export interface PackedCheck {
  readonly publicKey: Uint8Array;
  readonly message: SlashableMessage;
  readonly floors: HighWaterMarks;
}

export function packBatch(messages: readonly SlashableMessage[], floors: readonly HighWaterMarks[]): ArrayBuffer {
  const memory = new ArrayBuffer(messages.length * RECORD_BYTES);
  const buffer = Buffer.from(memory);
  let at = 0;
  for (const [index, message] of messages.entries()) {
    const isBlock = message.kind === 'block';
    at = buffer.writeUInt8(isBlock ? BLOCK : ATTESTATION, at);
    const written = buffer.write(message.publicKey.slice(2), at, PUBLIC_KEY_BYTES, 'hex');
    assert.equal(written, PUBLIC_KEY_BYTES, 'a public key is 48 bytes');
    at += PUBLIC_KEY_BYTES;
    at = buffer.writeDoubleLE(isBlock ? message.slot : message.sourceEpoch, at);
    at = buffer.writeDoubleLE(isBlock ? NONE : message.targetEpoch, at);
    assert.equal(message.signingRoot.length, ROOT_BYTES, 'a signing root is 32 bytes');
    buffer.set(message.signingRoot, at);
    at += ROOT_BYTES;
    const floor = floors[index];
    at = buffer.writeDoubleLE(floor?.blockSlot ?? NONE, at);
    at = buffer.writeDoubleLE(floor?.sourceEpoch ?? NONE, at);
    at = buffer.writeDoubleLE(floor?.targetEpoch ?? NONE, at);
  }
  assert.equal(at, memory.byteLength);
  return memory;
}

export function* unpackBatch(memory: ArrayBuffer): Generator<PackedCheck> {
  const buffer = Buffer.from(memory);
  for (let at = 0; at < buffer.length; at += RECORD_BYTES) {
    const publicKey = buffer.subarray(at + 1, at + 49);
    const first = buffer.readDoubleLE(at + 49);
    const second = buffer.readDoubleLE(at + 57);
    const signingRoot = buffer.subarray(at + 65, at + 97);
    const message: SlashableMessage =
      buffer[at] === BLOCK
        ? { kind: 'block', publicKey: '', slot: first, signingRoot }
        : { kind: 'attestation', publicKey: '', sourceEpoch: first, targetEpoch: second, signingRoot };
    const floors = {
      blockSlot: numberOrNull(buffer.readDoubleLE(at + 97)),
      sourceEpoch: numberOrNull(buffer.readDoubleLE(at + 105)),
      targetEpoch: numberOrNull(buffer.readDoubleLE(at + 113)),
    };
    yield { publicKey, message, floors };
  }
}

export function packVerdicts(verdicts: readonly Verdict[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(verdicts, (verdict) => {
    if (verdict.kind === 'safe') return verdict.repeat ? REPEAT : SAFE;
    const place = REASONS.indexOf(verdict.reason);
    assert(place >= 0, 'every reason has a byte');
    return FIRST_REASON + place;
  });
}

/** @throws RangeError for a byte that no verdict has */
export function unpackVerdicts(bytes: Uint8Array): Verdict[] {
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
const KEY_FAULTS = ['slashing_integrity', 'slashing_rollback', 'slashing_unavailable'] as const satisfies KeyFault[];
const REASONS: readonly (SlashingRefusal | KeyFault)[] = [
  'double_block',
  'block_below_low_water_mark',
  'double_vote',
  'surrounding_vote',
  'surrounded_vote',
  'source_after_target',
  'source_below_low_water_mark',
  'target_below_low_water_mark',
  ...KEY_FAULTS,
];

function isKeyFault(reason: SlashingRefusal | KeyFault): reason is KeyFault {
  return (KEY_FAULTS as readonly string[]).includes(reason);
}

function numberOrNull(value: number): number | null {
  return value === NONE ? null : value;
}
