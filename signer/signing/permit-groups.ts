// The groups of keys that wait for permits of one pool. A group takes one permit for each key, up to a fair share: the
// permits of the pool, divided by the number of groups plus one. The groups never take the last share. It stays for
// requests for one key, even when the first groups took their shares before the others came. Groups below their share
// take turns. This file trusts its owner's number of free permits, and never takes more.

import assert from 'node:assert/strict';

/** One group of keys, each of which waits, then holds a permit, then is done. */
export interface PermitGroup {
  /**
   * Permits for as many of the waiting keys as there are, one at least and `most` at most. One call at a time.
   * Rejects with the signal's reason when it aborts first.
   */
  take(most: number, signal: AbortSignal): Promise<number>;
  /** Give permits back. */
  release(count: number): void;
  /** Give up the places of the keys that still wait. Permits that are held stay held. */
  leave(): void;
}

export interface PermitGroups {
  /** Keys that wait, of all groups. */
  readonly places: number;
  /** The owner has seen to it that there are so many places. */
  enter(keys: number): PermitGroup;
  /** Let the next group have permits that are free; false when none of them may. */
  admitNext(): boolean;
}

/** The permits of the pool that are free. */
export interface FreePermits {
  /** @returns how many were taken, at most `most` */
  take(most: number): number;
  giveBack(count: number): void;
}

interface Group {
  waiting: number;
  held: number;
  /** Set while it wants permits. */
  wish: { readonly most: number; readonly admit: (count: number) => void } | undefined;
}

export function permitGroups(permits: number, free: FreePermits): PermitGroups {
  /** The one whose turn is next first. */
  const groups = new Set<Group>();
  let places = 0;
  /** By all groups. */
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
