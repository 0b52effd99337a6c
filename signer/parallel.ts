// Work on many items, some of them at once. All that was started ends before a failure is thrown: nothing goes on
// behind the caller's back.

import { strict as assert } from 'node:assert';
import { setImmediate } from 'node:timers';

/**
 * Starts the work on the items in their order, at most `atOnce` at the same time. After the first failure no further
 * item starts; all that were started are awaited; then the first failure is thrown, and the later ones are lost.
 */
export async function inParallel<Item>(
  list: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  assert(atOnce >= 1); // with less, it would leave everything undone and say nothing
  const items = list.values();
  let failure: { readonly error: unknown } | undefined;
  const workers = Array.from({ length: Math.min(atOnce, list.length) }, async () => {
    for (const item of items) {
      if (failure !== undefined) return;
      try {
        await work(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  });
  await Promise.all(workers);
  if (failure !== undefined) throw failure.error;
}

/** Works that take some of so many places; each waits for its own, first come, first served. */
export function roomFor(places: number): <T>(count: number, work: () => Promise<T>) => Promise<T> {
  let free = places;
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const admit = (): void => {
    for (let next = waiting[0]; next !== undefined && next.count <= free; next = waiting[0]) {
      free -= next.count;
      waiting.shift();
      next.resolve();
    }
  };
  return async (count, work) => {
    assert(count <= places); // it would wait for ever
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push({ count, resolve });
    admit();
    await promise;
    try {
      return await work();
    } finally {
      free += count;
      admit();
    }
  };
}

export function chunks<Element>(list: readonly Element[], size: number): (readonly Element[])[] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, at) => list.slice(at * size, (at + 1) * size));
}

// Long work gives way to requests: one work goes on in each turn of the event loop, however many are under way.

export interface Turns {
  /** After so many entries; without a number the next turn is waited for. Rejects when the store is closed. */
  turn(entries?: number): Promise<void>;
  close(): void;
}

export function eventLoopTurns(stepEntries: number): Turns {
  const waiting: PromiseWithResolvers<void>[] = [];
  let handled = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      waiting.shift()?.resolve();
      schedule();
    });
  }

  return {
    async turn(entries = stepEntries) {
      handled += entries;
      if (handled < stepEntries) return;
      handled = 0;
      const own = Promise.withResolvers<void>();
      waiting.push(own);
      schedule();
      await own.promise;
    },
    close() {
      for (const { reject } of waiting.splice(0)) reject(new Error('the store is closed'));
    },
  };
}
