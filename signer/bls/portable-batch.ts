// The messages between the portable BLS core and its workers. For each job, the core sends the number of the key's slot
// (4 bytes, little endian) and the root (32 bytes). The worker answers 96 bytes for each job, in the same order, with
// the number of the batch. So the core never takes an answer for that of another batch, even when a worker skips a
// batch while it ends. To derive public keys, the core sends slot numbers. The worker answers 48 bytes for each, or
// zeros where blst refuses the secret.

import { type Job, ROOT_BYTES } from './queue.ts';

const SLOT_BYTES = 4;
const JOB_BYTES = SLOT_BYTES + ROOT_BYTES;

export interface BatchMessage {
  readonly number: number;
  readonly jobs: Uint8Array<ArrayBuffer>;
}

export interface DerivationMessage {
  readonly number: number;
  readonly slots: readonly number[];
}

export interface DerivedMessage {
  readonly number: number;
  readonly publicKeys: Uint8Array<ArrayBuffer>;
}

export interface SignedMessage {
  readonly number: number;
  readonly signatures: Uint8Array<ArrayBuffer>;
}

export function encodeBatch(jobs: readonly { readonly slot: number; readonly job: Job }[]): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(jobs.length * JOB_BYTES);
  const slots = new DataView(message.buffer);
  for (const [index, { slot, job }] of jobs.entries()) {
    slots.setUint32(index * JOB_BYTES, slot, true);
    message.set(job.root, index * JOB_BYTES + SLOT_BYTES);
  }
  return message;
}

export function decodeBatch(message: Uint8Array): { slot: number; root: Uint8Array }[] {
  const slots = new DataView(message.buffer, message.byteOffset, message.byteLength);
  return Array.from({ length: message.length / JOB_BYTES }, (_, index) => ({
    slot: slots.getUint32(index * JOB_BYTES, true),
    root: message.subarray(index * JOB_BYTES + SLOT_BYTES, (index + 1) * JOB_BYTES),
  }));
}
