// Admission to the signing path: a fixed number of jobs at once, a priority pool with a part of these permits, and one
// bounded queue behind both (specification/signing.md#permits). Callers take turns. A full queue refuses at once: the
// newcomer, or the newest request of the caller that has most places, when the newcomer's caller has fewer. A group of
// keys waits with one place for each key, and takes at most a fair share: the pool's permits divided by the number of
// groups plus one. The groups never take the last share: it stays for requests for one key.

import assert from 'node:assert/strict';
import { CallerLines } from '../../common/flow/caller-lines.ts';
import { SignerError } from '../api/errors.ts';
import type { Lane } from '../bls/bls.ts';

interface PermitOptions {
  /** Permits of both pools together. */
  readonly maxConcurrentJobs: number;
  readonly queueLimit: number;
  /** Permits of the priority pool; 0 when it is off. Smaller than maxConcurrentJobs. */
  readonly priorityJobs: number;
}

interface Waiter {
  readonly admit: () => void;
  readonly refuse: (error: SignerError) => void;
}

interface Pool {
  free: number;
  readonly permits: number;
  readonly waiting: CallerLines<Waiter>;
  readonly groups: PermitGroups;
  isTurnOfGroups: boolean;
}

export interface Permits {
  /**
   * Undefined when a permit was free (the common case, no promise made).
   * @throws SignerError `overloaded` when the queue is full; the promise rejects so when another caller with fewer
   * places needs this one, and with the signal's reason when it aborts.
   */
  acquire(lane: Lane, signal: AbortSignal, caller?: string): Promise<void> | undefined;
  release(lane: Lane): void;
  /** @throws SignerError `overloaded` when there are fewer places than keys */
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
    acquire(lane, signal, caller = '') {
      signal.throwIfAborted();
      const pool = pools[lane];
      if (pool.free > 0) {
        pool.free -= 1;
        return undefined;
      }
      if (placesLeft() <= 0 && !makeRoom(pools, caller)) throw new SignerError('overloaded');
      return waitInLine(pool, signal, caller);
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
    waiting: new CallerLines(),
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
    const next = pool.waiting.take()?.item;
    if (next === undefined && !pool.groups.admitNext()) return;
    if (next === undefined) continue;
    pool.free -= 1;
    pool.isTurnOfGroups = true;
    next.admit();
  }
}

/** The newest request of the caller with most places goes, for a caller that has fewer even with one more. */
function makeRoom(pools: Readonly<Record<Lane, Pool>>, caller: string): boolean {
  const lines = [pools.normal.waiting, pools.priority.waiting];
  const own = Math.max(...lines.map((line) => line.sizeOf(caller)));
  let most = { caller: '', size: 0 };
  let from: CallerLines<Waiter> | undefined;
  for (const line of lines) {
    const longest = line.longest();
    if (longest === undefined || longest.size <= most.size) continue;
    most = longest;
    from = line;
  }
  const newest = most.size > own + 1 ? from?.takeNewest(most.caller) : undefined;
  newest?.refuse(new SignerError('overloaded'));
  return newest !== undefined;
}

function waitInLine({ waiting }: Pool, signal: AbortSignal, caller: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      waiting.remove(caller, waiter);
      reject(signal.reason);
    };
    const waiter: Waiter = {
      admit: () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      },
      refuse: (error) => {
        signal.removeEventListener('abort', giveUp);
        reject(error);
      },
    };
    waiting.push(caller, waiter);
    signal.addEventListener('abort', giveUp, { once: true });
  });
}

export interface PermitGroup {
  /** One permit at least and `most` at most. One call at a time. Rejects with the signal's reason when it aborts. */
  take(most: number, signal: AbortSignal): Promise<number>;
  release(count: number): void;
  /** Permits that are held stay held. */
  leave(): void;
}

interface PermitGroups {
  readonly places: number;
  enter(keys: number): PermitGroup;
  /** False when none of them may have permits that are free. */
  admitNext(): boolean;
}

interface FreePermits {
  /** @returns how many were taken, at most `most` */
  take(most: number): number;
  giveBack(count: number): void;
}

interface Group {
  waiting: number;
  held: number;
  wish: { readonly most: number; readonly admit: (count: number) => void } | undefined;
}

function permitGroups(permits: number, free: FreePermits): PermitGroups {
  const groups = new Set<Group>();
  let places = 0;
  let held = 0;

  const takeFor = (group: Group, most: number): number => {
    const share = Math.floor(permits / (groups.size + 1));
    const left = Math.min(Math.max(1, share) - group.held, permits - share - held);
    const count = free.take(Math.min(most, group.waiting, Math.max(0, left)));
    group.waiting -= count;
    group.held += count;
    held += count;
    places -= count;
    return count;
  };
  const endIfDone = (group: Group): void => {
    if (group.waiting === 0 && group.held === 0) groups.delete(group);
  };

  const handleOf = (group: Group): PermitGroup => ({
    take(most, signal) {
      assert(group.wish === undefined && group.waiting > 0 && most > 0);
      if (signal.aborted) return Promise.reject(signal.reason);
      const count = takeFor(group, most);
      if (count > 0) return Promise.resolve(count);
      return new Promise((resolve, reject) => {
        const giveUp = (): void => {
          group.wish = undefined;
          reject(signal.reason);
        };
        const admit = (admitted: number): void => {
          group.wish = undefined;
          signal.removeEventListener('abort', giveUp);
          resolve(admitted);
        };
        group.wish = { most, admit };
        signal.addEventListener('abort', giveUp, { once: true });
      });
    },
    release(count) {
      assert(count > 0 && count <= group.held);
      group.held -= count;
      held -= count;
      endIfDone(group);
      free.giveBack(count);
    },
    leave() {
      places -= group.waiting;
      group.waiting = 0;
      endIfDone(group);
      free.giveBack(0); // the shares of the others have grown
    },
  });

  return {
    get places() {
      return places;
    },
    enter(keys) {
      assert(keys > 0);
      const group: Group = { waiting: keys, held: 0, wish: undefined };
      groups.add(group);
      places += keys;
      return handleOf(group);
    },
    admitNext() {
      for (const group of groups) {
        if (group.wish === undefined) continue;
        const count = takeFor(group, group.wish.most);
        if (count === 0) continue;
        groups.delete(group);
        groups.add(group); // its next turn comes after those of the others
        group.wish.admit(count);
        return true;
      }
      return false;
    },
  };
}
