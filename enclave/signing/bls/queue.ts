// The waiting line of a BLS core: two lanes, first in first out in each, `priority` always before `normal`. Bounded as a last resort;
// the permits of the signing path are the real limit. Copies the root, so that what is signed is what was asked for.

import assert from 'node:assert/strict';
import { SignerError } from '../../api/errors.ts';
import type { KeyHandle } from '../../keys/store.ts';
import type { Lane } from './bls.ts';

/** Jobs that may wait in one core. */
export const MAX_QUEUED_JOBS = 65_536;

export const ROOT_BYTES = 32;
export const SIGNATURE_BYTES = 96;

export interface Job {
  readonly handle: KeyHandle;
  readonly root: Uint8Array;
  readonly resolve: (signature: Uint8Array) => void;
  readonly reject: (error: SignerError) => void;
}

export interface JobQueue {
  readonly length: number;
  /** Append a job; its promise settles when whoever takes the job settles it. */
  push(handle: KeyHandle, root: Uint8Array, lane: Lane): Promise<Uint8Array>;
  /** Take up to `count` jobs, priority first. */
  take(count: number): Job[];
  rejectAll(error: SignerError): void;
}

/** @param onJobs called after the microtasks in which jobs came: a group commit releases many in one turn, and they should share batches */
export function createJobQueue(onJobs: () => void): JobQueue {
  const priority = createLine();
  const normal = createLine();
  let isTold = false;
  const tellSoon = (): void => {
    if (isTold) return;
    isTold = true;
    queueMicrotask(() => {
      isTold = false;
      onJobs();
    });
  };
  return {
    get length() {
      return priority.length + normal.length;
    },
    push(handle, root, lane) {
      assert.equal(root.length, ROOT_BYTES);
      if (this.length >= MAX_QUEUED_JOBS) return Promise.reject(new SignerError('overloaded'));
      const line = lane === 'priority' ? priority : normal;
      tellSoon();
      return new Promise((resolve, reject) => line.push({ handle, root: new Uint8Array(root), resolve, reject }));
    },
    take(count) {
      const jobs = priority.take(count);
      return jobs.length === count ? jobs : jobs.concat(normal.take(count - jobs.length));
    },
    rejectAll(error) {
      rejectJobs(this.take(this.length), error);
    },
  };
}

export function signingUnavailable(why: string, cause?: unknown): SignerError {
  return new SignerError('signing_unavailable', { detail: { why }, cause });
}

/**
 * Give every job its signature out of one buffer of 96 bytes a job. Zeros mean that the key was gone: no compressed point begins with
 * a zero byte, so this cannot be a signature.
 */
export function settleJobs(jobs: readonly Job[], signatures: Uint8Array): void {
  assert.equal(signatures.length, jobs.length * SIGNATURE_BYTES);
  let at = 0;
  for (const job of jobs) {
    const signature = signatures.subarray(at, at + SIGNATURE_BYTES);
    at += SIGNATURE_BYTES;
    if (signature[0] === 0) job.reject(signingUnavailable('the key is not loaded any more'));
    else job.resolve(signature);
  }
}

export function rejectJobs(jobs: Iterable<Job>, error: SignerError): void {
  for (const job of jobs) job.reject(error);
}

/** A list that gives from its front without moving the rest each time. */
function createLine() {
  let jobs: Job[] = [];
  let first = 0;
  return {
    get length() {
      return jobs.length - first;
    },
    push(job: Job) {
      jobs.push(job);
    },
    take(count: number): Job[] {
      const taken = jobs.slice(first, first + count);
      first += taken.length;
      if (first * 2 >= jobs.length) {
        jobs = jobs.slice(first);
        first = 0;
      }
      return taken;
    },
  };
}
