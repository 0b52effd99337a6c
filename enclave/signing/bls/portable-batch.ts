// What the portable BLS core sends its workers: for each job the number of the key's slot (4 bytes, little endian) and
// the root (32 bytes). The answer is 96 bytes a job in the same order, under the batch's number: an answer is never
// taken for that of another batch, not even when a worker skips one on its way down. Keys whose public keys are asked
// for go as the numbers of their slots, and come back as 48 bytes each, zeros where blst refuses the secret.

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
