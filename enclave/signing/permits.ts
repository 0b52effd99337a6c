// Admission to the signing path: a fixed number of jobs at once, a priority pool with a part of these permits, and one
// bounded queue behind both (specification/signing.md#permits). A full queue refuses at once, before any work is done.
// A waiter whose signal aborts leaves the queue and frees its place. A group of keys waits in the same queue, with one
// place for each key, and gets its permits in shares (permit-groups.ts). However many groups there are, one share stays
// for requests for one key.

import { SignerError } from '../api/errors.ts';
import type { Lane } from './bls/bls.ts';
import { type PermitGroup, type PermitGroups, permitGroups } from './permit-groups.ts';

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
  /** Single requests. */
  readonly waiting: Set<Waiter>;
  readonly groups: PermitGroups;
  isTurnOfGroups: boolean;
}

export interface Permits {
  /**
   * Take a permit. Undefined when one was free (the common case, no promise made), else a promise that resolves when
   * one is.
   * @throws SignerError `overloaded` when the queue is full; the promise rejects with the signal's reason when it
   * aborts.
   */
  acquire(lane: Lane, signal: AbortSignal): Promise<void> | undefined;
  release(lane: Lane): void;
  /**
   * Places in the queue for a group of keys, at least one.
   * @throws SignerError `overloaded` when there are fewer places than keys
   */
  enter(lane: Lane, keys: number): PermitGroup;
  load(lane: Lane): { readonly inFlight: number; readonly queued: number };
}

export function createPermits(options: PermitOptions): Permits {
  const pools: Record<Lane, Pool> = {
    normal: newPool(options.maxConcurrentJobs - options.priorityJobs),
    priority: newPool(options.priorityJobs),
  };
  const placesLeft = (): number => options.queueLimit - queued(pools.normal) - queued(pools.priority);
  return {
    acquire(lane, signal) {
      signal.throwIfAborted();
      const pool = pools[lane];
      if (pool.free > 0) {
        pool.free -= 1;
        return undefined;
      }
      if (placesLeft() <= 0) throw new SignerError('overloaded');
      return waitInLine(pool, signal);
    },
    release(lane) {
      const pool = pools[lane];
      pool.free += 1;
      passOn(pool);
    },
    enter(lane, keys) {
      if (placesLeft() < keys) throw new SignerError('overloaded');
      return pools[lane].groups.enter(keys);
    },
    load(lane) {
      const pool = pools[lane];
      return { inFlight: pool.permits - pool.free, queued: queued(pool) };
    },
  };
}

function newPool(permits: number): Pool {
  const pool: Pool = {
    free: permits,
    permits,
    waiting: new Set(),
    isTurnOfGroups: false,
    groups: permitGroups(permits, {
      take: (most) => {
        const taken = Math.min(most, pool.free);
        pool.free -= taken;
        return taken;
      },
      giveBack: (count) => {
        pool.free += count;
        passOn(pool);
      },
    }),
  };
  return pool;
}

function queued({ waiting, groups }: Pool): number {
  return waiting.size + groups.places;
}

/** Those who wait alone and the groups take turns, so that neither holds up the other for good. */
function passOn(pool: Pool): void {
  while (pool.free > 0) {
    if (pool.isTurnOfGroups && pool.groups.admitNext()) {
      pool.isTurnOfGroups = false;
      continue;
    }
    const [next] = pool.waiting;
    if (next === undefined && !pool.groups.admitNext()) return;
    if (next === undefined) continue;
    pool.waiting.delete(next);
    pool.free -= 1;
    pool.isTurnOfGroups = true;
    next.admit();
  }
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
