// Bounded parallel work: how much of it is under way, and what a failure leaves.

import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inParallel, roomFor } from '../signer/parallel.ts';

const ITEMS = ['a', 'b', 'c', 'd', 'e'];

function heldWork() {
  const started: string[] = [];
  const held = new Map<string, PromiseWithResolvers<void>>();
  const work = (item: string): Promise<void> => {
    started.push(item);
    const ending = Promise.withResolvers<void>();
    held.set(item, ending);
    return ending.promise;
  };
  const ends = async (item: string) => {
    held.get(item)?.resolve();
    await turn();
  };
  const fails = async (item: string, problem = item) => {
    held.get(item)?.reject(new Error(problem));
    await turn();
  };
  return { started, work, ends, fails };
}

function outcomeOf(promise: Promise<void>): () => string {
  let outcome = 'under way';
  promise.then(
    () => (outcome = 'done'),
    (error: unknown) => (outcome = String(error)),
  );
  return () => outcome;
}

it('starts every item once, in order, and never more at once than it may', async () => {
  const { started, work, ends } = heldWork();
  const outcome = outcomeOf(inParallel(ITEMS, 2, work));
  expect(started).toEqual(['a', 'b']);
  await ends('b');
  expect(started).toEqual(['a', 'b', 'c']);
  for (const item of ['a', 'c', 'd']) await ends(item);
  expect([started, outcome()]).toEqual([ITEMS, 'under way']);
  await ends('e');
  expect([started, outcome()]).toEqual([ITEMS, 'done']);
});

it('after the first failure starts nothing, awaits what was started, and throws the first failure', async () => {
  const { started, work, ends, fails } = heldWork();
  const outcome = outcomeOf(inParallel(ITEMS, 3, work));
  await fails('b', 'the first');
  expect(outcome()).toBe('under way');
  await fails('a', 'a later one');
  expect(outcome()).toBe('under way');
  await ends('c');
  expect([started, outcome()]).toEqual([['a', 'b', 'c'], 'Error: the first']);
});

it('awaits what was started also when the work throws at once, and takes undefined for a failure', async () => {
  const { started, work, ends } = heldWork();
  const outcome = outcomeOf(
    inParallel(ITEMS, 2, (item) => {
      if (item === 'b') throw undefined;
      return work(item);
    }),
  );
  await turn();
  expect([started, outcome()]).toEqual([['a'], 'under way']);
  await ends('a');
  expect([started, outcome()]).toEqual([['a'], 'undefined']);
});

it('does an empty list, items that are undefined, and more at once than there are', async () => {
  const seen: unknown[] = [];
  const see = async (item: unknown) => void seen.push(item);
  await inParallel([], 3, see);
  await inParallel([undefined, 1, undefined], Infinity, see);
  expect(seen).toEqual([undefined, 1, undefined]);
});

it.each([0, -1, Number.NaN])('refuses to do %s at once', async (atOnce) => {
  await expect(inParallel(ITEMS, atOnce, async () => undefined)).rejects.toThrow('atOnce');
});

it('room is given in the order of asking, and no work overtakes one that waits for more', async () => {
  const { started, work, ends, fails } = heldWork();
  const take = roomFor(3);
  const works = (
    [
      ['a', 2],
      ['b', 2],
      ['c', 1],
      ['d', 3],
    ] as const
  ).map(([item, count]) => outcomeOf(take(count, () => work(item))));
  await turn();
  expect(started).toEqual(['a']);
  await ends('a');
  expect(started).toEqual(['a', 'b', 'c']);
  await fails('b');
  expect(started).toEqual(['a', 'b', 'c']);
  await ends('c');
  expect(started).toEqual(['a', 'b', 'c', 'd']);
  await ends('d');
  expect(works.map((outcome) => outcome())).toEqual(['done', 'Error: b', 'done', 'done']);
});

it('refuses work that takes more room than there is', async () => {
  await expect(roomFor(3)(4, async () => undefined)).rejects.toThrow('count');
});
