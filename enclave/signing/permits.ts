// Admission to the signing path: a fixed number of jobs at once, a priority pool whose permits are carved out of the total, and
// one bounded queue behind both (specification/signing.md#permits). A full queue refuses at once, before any work is done.
// A waiter whose signal aborts leaves the queue and frees its place.

import { SignerError } from '../api/errors.ts';
import type { Lane } from './bls/bls.ts';

export interface PermitOptions {
  /** signing.max_concurrent_jobs: permits of both pools together. */
  readonly maxConcurrentJobs: number;
  /** signing.queue_buffer_size: waiters of both pools together at most. */
  readonly queueLimit: number;
  /** Permits of the priority pool; 0 when it is off. Smaller than maxConcurrentJobs. */
  readonly priorityJobs: number;
}

interface Waiter {
  readonly admit: () => void;
}

interface Pool {
  free: number;
  readonly permits: number;
  readonly waiting: Set<Waiter>;
}

export interface Permits {
  /**
   * Take a permit. Undefined when one was free (the common case, no promise made), else a promise that resolves when one is.
   * @throws SignerError `overloaded` when the queue is full; the promise rejects with the signal's reason when it aborts.
   */
  acquire(lane: Lane, signal: AbortSignal): Promise<void> | undefined;
  release(lane: Lane): void;
  load(lane: Lane): { readonly inFlight: number; readonly queued: number };
}

export function createPermits(options: PermitOptions): Permits {
  const pools: Record<Lane, Pool> = {
    normal: newPool(options.maxConcurrentJobs - options.priorityJobs),
    priority: newPool(options.priorityJobs),
  };
  return {
    acquire(lane, signal) {
      signal.throwIfAborted();
      const pool = pools[lane];
      if (pool.free > 0) {
        pool.free -= 1;
        return undefined;
      }
      if (pools.normal.waiting.size + pools.priority.waiting.size >= options.queueLimit)
        throw new SignerError('overloaded');
      return waitInLine(pool, signal);
    },
    release(lane) {
      const pool = pools[lane];
      const [next] = pool.waiting;
      if (next === undefined) {
        pool.free += 1;
        return;
      }
      pool.waiting.delete(next);
      next.admit(); // the permit passes on without becoming free in between
    },
    load(lane) {
      const pool = pools[lane];
      return { inFlight: pool.permits - pool.free, queued: pool.waiting.size };
    },
  };
}

function newPool(permits: number): Pool {
  return { free: permits, permits, waiting: new Set() };
}

function waitInLine(pool: Pool, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      pool.waiting.delete(waiter);
      reject(signal.reason);
    };
    const waiter: Waiter = {
      admit: () => {
        signal.removeEventListener('abort', leave);
        resolve();
      },
    };
    pool.waiting.add(waiter);
    signal.addEventListener('abort', leave, { once: true });
  });
}
