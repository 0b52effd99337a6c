// How a batch of checks travels between the main thread and the database worker: one transferable buffer each way,
// fixed-size records, so that no request costs a structured clone of its own.

import type { HighWaterMarks, SlashableMessage, SlashingRefusal, Verdict } from './types.ts';

/** kind 1, public key 48, two numbers, signing root 32, three floors; numbers are doubles, -1 for none. */
const RECORD_BYTES = 1 + 48 + 2 * 8 + 32 + 3 * 8;
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
    at += buffer.write(message.publicKey.slice(2), at, 48, 'hex');
    at = buffer.writeDoubleLE(isBlock ? message.slot : message.sourceEpoch, at);
    at = buffer.writeDoubleLE(isBlock ? NONE : message.targetEpoch, at);
    buffer.set(message.signingRoot, at);
    at += 32;
    const floor = floors[index];
    at = buffer.writeDoubleLE(floor?.blockSlot ?? NONE, at);
    at = buffer.writeDoubleLE(floor?.sourceEpoch ?? NONE, at);
    at = buffer.writeDoubleLE(floor?.targetEpoch ?? NONE, at);
  }
  if (at !== memory.byteLength) throw new RangeError('a public key or signing root has the wrong length');
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
    return FIRST_REASON + REASONS.indexOf(verdict.reason);
  });
}

/** @throws RangeError for a byte that no verdict has */
export function unpackVerdicts(bytes: Uint8Array): Verdict[] {
  return Array.from(bytes, (byte) => {
    if (byte === SAFE) return { kind: 'safe', repeat: false };
    if (byte === REPEAT) return { kind: 'safe', repeat: true };
    const reason = REASONS[byte - FIRST_REASON];
    if (reason === undefined) throw new RangeError(`no verdict has the byte ${byte}`);
    if (reason === 'slashing_integrity' || reason === 'slashing_rollback') return { kind: 'unavailable', reason };
    return { kind: 'refused', reason };
  });
}

// 0 means nothing: a byte that was never written is no verdict.
const SAFE = 1;
const REPEAT = 2;
const FIRST_REASON = 3;
const REASONS: readonly (SlashingRefusal | 'slashing_integrity' | 'slashing_rollback')[] = [
  'double_block',
  'block_below_low_water_mark',
  'double_vote',
  'surrounding_vote',
  'surrounded_vote',
  'source_after_target',
  'source_below_low_water_mark',
  'target_below_low_water_mark',
  'slashing_integrity',
  'slashing_rollback',
];

function numberOrNull(value: number): number | null {
  return value === NONE ? null : value;
}
