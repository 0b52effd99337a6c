// The order in which a BLS core takes the jobs of several callers.

import { expect, it } from 'vitest';
import { createJobQueue } from '../../signer/bls/queue.ts';
import type { KeyHandle } from '../../signer/keys/vault.ts';

const root = new Uint8Array(32);
const FIRST_OF_OTHER = 100;

function queueOf(...jobs: readonly (readonly [caller: string, handle: number])[]) {
  const queue = createJobQueue(() => undefined);
  for (const [caller, handle] of jobs) void queue.push(handle as KeyHandle, root, 'normal', caller);
  return queue;
}
const numbered = (caller: string, first: number, count: number): (readonly [string, number])[] =>
  Array.from({ length: count }, (_, n) => [caller, first + n] as const);

it('callers take turns, and each gets its own jobs in order', () => {
  const queue = queueOf(...numbered('flood', 1, 20), ...numbered('other', FIRST_OF_OTHER, 3));
  const taken = [queue.takeSingles(4), queue.takeSingles(4), queue.takeSingles(4)].map((jobs) =>
    jobs.map(({ handle }) => Number(handle)),
  );
  expect(taken).toEqual([
    [1, 100, 2, 101],
    [3, 102, 4, 5],
    [6, 7, 8, 9],
  ]);
  expect(queue.length).toBe(11);
});

it('a caller alone gets whole batches, also after others came and went', () => {
  const queue = queueOf(...numbered('one', 1, 3), ...numbered('other', FIRST_OF_OTHER, 1));
  expect(queue.takeSingles(16)).toHaveLength(4);
  expect(queue.takeSingles(16)).toEqual([]);
  for (const [caller, handle] of numbered('one', 1, 9)) void queue.push(handle as KeyHandle, root, 'normal', caller);
  expect(queue.takeSingles(16).map(({ handle }) => Number(handle))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(queue.length).toBe(0);
});

it('jobs with priority still come before all others, whoever has them', () => {
  const queue = queueOf(...numbered('flood', 1, 5));
  void queue.push(FIRST_OF_OTHER as KeyHandle, root, 'priority', 'other');
  expect(queue.takeSingles(2).map(({ handle }) => Number(handle))).toEqual([100, 1]);
});

it('jobs of one root are taken together, of one caller or of several in turn, and others as few as asked for', () => {
  const other = new Uint8Array(32).fill(1);
  const queue = queueOf(...numbered('one', 1, 5));
  void queue.push(6 as KeyHandle, other, 'normal', 'one');
  void queue.push(7 as KeyHandle, root, 'normal', 'one');
  expect(queue.takeSingles(2, 4).map(({ handle }) => Number(handle))).toEqual([1, 2, 3, 4]);
  expect(queue.takeSingles(2, 4).map(({ handle }) => Number(handle))).toEqual([5, 6]);
  for (const [caller, handle] of numbered('other', FIRST_OF_OTHER, 3)) {
    void queue.push(handle as KeyHandle, handle > FIRST_OF_OTHER + 1 ? other : root, 'normal', caller);
  }
  expect(queue.takeSingles(1, 8).map(({ handle }) => Number(handle))).toEqual([7, 100, 101]);
  expect(queue.takeSingles(1, 8).map(({ handle }) => Number(handle))).toEqual([102]);
});

it('what has priority is signed with few others, also when they have its root', () => {
  const queue = queueOf(...numbered('one', 1, 40));
  void queue.push(FIRST_OF_OTHER as KeyHandle, root, 'priority', 'other');
  expect(queue.takeSingles(4, 16).map(({ handle }) => Number(handle))).toEqual([100, 1, 2, 3]);
});
