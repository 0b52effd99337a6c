// The queue of a BLS core. In a lane the callers take turns; the jobs of groups come behind both lanes. It copies each
// root, so that the core signs exactly the root that was passed in.

import assert from 'node:assert/strict';
import { CallerLines } from '../../common/flow/caller-lines.ts';
import { SignerError } from '../api/errors.ts';
import type { KeyHandle } from '../keys/vault.ts';
import type { GroupSignature, Lane } from './bls.ts';

export const MAX_QUEUED_JOBS = 65_536;

export const ROOT_BYTES = 32;
export const SIGNATURE_BYTES = 96;

export interface Job {
  readonly handle: KeyHandle;
  readonly root: Uint8Array;
  resolve(signature: Uint8Array): void;
  reject(error: SignerError): void;
}

interface JobQueue {
  readonly length: number;
  readonly singles: number;
  readonly grouped: number;
  /** @param caller whose turn it takes */
  push(handle: KeyHandle, root: Uint8Array, lane: Lane, caller?: string): Promise<Uint8Array>;
  pushGroup(handles: readonly KeyHandle[], root: Uint8Array, lane: Lane): Promise<readonly GroupSignature[]>;
  /** Priority first. @param mostAlike so many when those beyond the count have the root of the last */
  takeSingles(count: number, mostAlike?: number): Job[];
  /** As many as have the root of the first. */
  takeGrouped(count: number): Job[];
  rejectAll(error: SignerError): void;
}

/** @param onJobs called after the microtasks in which jobs came: those of one group commit should share batches */
export function createJobQueue(onJobs: () => void): JobQueue {
  const priority = new CallerLines<Job>();
  const normal = new CallerLines<Job>();
  /** Of all groups, in one line. */
  const grouped = new CallerLines<Job>();
  let isTold = false;
  const tellSoon = (): void => {
    if (isTold) return;
    isTold = true;
    queueMicrotask(() => {
      isTold = false;
      onJobs();
    });
  };
  const takeSingles = (count: number, mostAlike = count): Job[] => {
    const jobs = takeJobs(priority, count, mostAlike);
    const left = count - jobs.length; // who has priority waits for few others
    return left <= 0 ? jobs : jobs.concat(takeJobs(normal, left, jobs.length > 0 ? left : mostAlike));
  };
  return {
    get length() {
      return this.singles + grouped.size;
    },
    get singles() {
      return priority.size + normal.size;
    },
    get grouped() {
      return grouped.size;
    },
    push(handle, root, lane, caller = '') {
      assert.equal(root.length, ROOT_BYTES);
      if (this.length >= MAX_QUEUED_JOBS) return Promise.reject(new SignerError('overloaded'));
      const line = lane === 'priority' ? priority : normal;
      tellSoon();
      return new Promise((resolve, reject) =>
        line.push(caller, { handle, root: new Uint8Array(root), resolve, reject }),
      );
    },
    pushGroup(handles, root, lane) {
      assert.equal(root.length, ROOT_BYTES);
      if (handles.length === 0) return Promise.resolve([]);
      if (this.length + handles.length > MAX_QUEUED_JOBS) return Promise.reject(new SignerError('overloaded'));
      const isPriority = lane === 'priority';
      const copy = new Uint8Array(root);
      tellSoon();
      return new Promise((resolve) => {
        const group = new Group(handles.length, resolve);
        for (let place = 0; place < handles.length; place++) {
          const job = new GroupJob(handles[place] as KeyHandle, copy, group, place);
          (isPriority ? priority : grouped).push('', job);
        }
      });
    },
    takeSingles,
    takeGrouped: (count) => takeJobs(grouped, Math.min(1, count), count),
    rejectAll(error) {
      rejectJobs(takeSingles(this.singles), error);
      rejectJobs(takeJobs(grouped, grouped.size), error);
    },
  };
}

class Group {
  readonly signatures: GroupSignature[];
  readonly #resolve: (signatures: readonly GroupSignature[]) => void;
  #left: number;

  constructor(size: number, resolve: (signatures: readonly GroupSignature[]) => void) {
    this.signatures = Array.from({ length: size });
    this.#left = size;
    this.#resolve = resolve;
  }

  settle(place: number, signature: GroupSignature): void {
    this.signatures[place] = signature;
    this.#left -= 1;
    if (this.#left === 0) this.#resolve(this.signatures);
  }
}

class GroupJob implements Job {
  readonly handle: KeyHandle;
  readonly root: Uint8Array;
  readonly #group: Group;
  readonly #place: number;

  constructor(handle: KeyHandle, root: Uint8Array, group: Group, place: number) {
    this.handle = handle;
    this.root = root;
    this.#group = group;
    this.#place = place;
  }

  resolve(signature: Uint8Array): void {
    this.#group.settle(this.#place, signature);
  }

  reject(error: SignerError): void {
    this.#group.settle(this.#place, error);
  }
}

export function signingUnavailable(why: string, cause?: unknown): SignerError {
  return new SignerError('signing_unavailable', { detail: { why }, cause });
}

/** Zeros mean that the key was gone: no compressed point begins with a zero byte. */
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

/** @param mostAlike so many when those beyond the count have the root of the last */
function takeJobs(lines: CallerLines<Job>, count: number, mostAlike = count): Job[] {
  const taken: Job[] = [];
  while (taken.length < count || (taken.length < mostAlike && hasRootOf(lines.peek(), taken.at(-1)))) {
    const next = lines.take();
    if (next === undefined) break;
    taken.push(next.item);
  }
  return taken;
}

function hasRootOf(job: Job | undefined, other: Job | undefined): boolean {
  return job !== undefined && other !== undefined && Buffer.compare(job.root, other.root) === 0;
}
