// Chooses the worker of the portable core for the next batch: it counts the jobs that each worker has, and takes the
// one with the fewest.

import type { Worker } from 'node:worker_threads';
import type { SignerError } from '../api/errors.ts';
import type { KeyHandle } from '../keys/vault.ts';
import type { Job } from './queue.ts';

/** Jobs a worker may have before it: what a priority job waits for at most when all workers are busy. */
const MAX_WORKER_JOBS = 16;

/**
 * Half of it, so that the next batch already lies with the worker when one is done; and a worker with more gets none,
 * so that batches are full.
 */
export const MAX_BATCH_JOBS = MAX_WORKER_JOBS / 2;

/** What MAX_DERIVATIONS public keys take, in signatures. */
const DERIVATION_JOBS = 4;

/** How long a worker that ended stays away: by how many times its place failed in a row without signing anything. */
const RESTART_DELAYS_MS = [0, 100, 1_000, 10_000];

export interface PinnedJob {
  readonly slot: number;
  readonly job: Job;
}

/** Keys whose public keys a caller waits for. */
export interface Derivation {
  readonly handles: readonly KeyHandle[];
  resolve(publicKeys: readonly (Uint8Array | undefined)[]): void;
  reject(error: SignerError): void;
}

type PinnedDerivation = Derivation & { readonly slots: readonly number[] };

export interface SigningWorker {
  readonly thread: Worker;
  /** The jobs that the worker has now, by their number. */
  readonly batches: Map<number, readonly PinnedJob[]>;
  /** Batches of keys that are being added and whose public keys the worker derives, by number. */
  readonly derivations: Map<number, PinnedDerivation>;
  outstanding: number;
  /** Ends of the workers in this place since one of them signed. */
  failuresInARow: number;
}

/** What is before a worker, in signatures. */
export function busyness({ outstanding, derivations }: SigningWorker): number {
  return outstanding + derivations.size * DERIVATION_JOBS;
}

/** One batch of public keys may always be with a worker, so that they come also while it signs without a pause. */
export function hasRoomToDerive(worker: SigningWorker): boolean {
  return worker.derivations.size === 0 || busyness(worker) + DERIVATION_JOBS <= MAX_WORKER_JOBS;
}

export function hasRoomToSign({ outstanding }: SigningWorker): boolean {
  return outstanding <= MAX_WORKER_JOBS - MAX_BATCH_JOBS;
}

export function leastBusy(
  workers: Iterable<SigningWorker>,
  hasRoom: (worker: SigningWorker) => boolean,
): SigningWorker | undefined {
  let best: SigningWorker | undefined;
  for (const worker of workers) {
    if (hasRoom(worker) && (best === undefined || busyness(worker) < busyness(best))) best = worker;
  }
  return best;
}

export function restartDelayMs(failuresInARow: number): number {
  return RESTART_DELAYS_MS[Math.min(failuresInARow, RESTART_DELAYS_MS.length - 1)] ?? 0;
}
