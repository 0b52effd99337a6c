// Turns by address in a bounded queue: who waits for whom, who gives up a place, and that every place that is left is
// somebody's again.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FairQueue, type FairQueueLimits } from '../../signer/http/fair-queue.ts';

const LIMITS: FairQueueLimits = { maxRunning: 1, maxWaiting: 4, maxWaitMs: 1000 };
const STAYS = new AbortController().signal;

let queue: FairQueue;
let begun: string[];
let finish: (() => void)[];

beforeEach(() => {
  vi.useFakeTimers();
  queue = new FairQueue(LIMITS);
  begun = [];
  finish = [];
});
afterEach(() => void vi.useRealTimers());

function ask(name: string, from = name.slice(0, 1), signal = STAYS): Promise<string> {
  const work = (): Promise<string> => {
    begun.push(name);
    return new Promise((resolve) => finish.push(() => resolve(name)));
  };
  return queue.run(from, signal, work).catch((error: { readonly reason: string }) => error.reason);
}

/** The work that runs ends, and the next has begun. */
async function next(): Promise<void> {
  finish.shift()?.();
  await vi.advanceTimersByTimeAsync(0);
}

async function drain(): Promise<void> {
  while (finish.length > 0) await next();
}

describe('turns', () => {
  it('go to those who wait in the order of their arrival', async () => {
    const all = ['a', 'b', 'c', 'd'].map((name) => ask(name));
    await drain();
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('go round the addresses: who asks once waits for one of each, whoever came before', async () => {
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) void ask(name);
    await drain();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3']);
  });

  it('are as many at a time as the limit says', async () => {
    queue = new FairQueue({ ...LIMITS, maxRunning: 2 });
    for (const name of ['a', 'b', 'c']) void ask(name);
    expect(begun).toEqual(['a', 'b']);
    await next();
    expect(begun).toEqual(['a', 'b', 'c']);
    expect(queue.waiting).toBe(0);
  });

  it('go on after work that fails', async () => {
    const failing = queue.run('a', STAYS, () => Promise.reject(new Error('a fault')));
    const after = ask('b');
    await expect(failing).rejects.toThrow('a fault');
    await drain();
    expect(await after).toBe('b');
  });
});

describe('a full queue', () => {
  it('takes the newest place of whoever holds most, and gives it to who holds less', async () => {
    const of = ['a0', 'a1', 'a2', 'a3', 'a4'].map((name) => ask(name)); // one runs, four wait
    const other = ask('b');
    expect(await of[4]).toBe('overloaded');
    await drain();
    expect(await other).toBe('b');
    expect(begun).toEqual(['a0', 'a1', 'b', 'a2', 'a3']);
  });

  it('refuses who would hold as much as anybody', async () => {
    for (const name of ['x', 'a1', 'a2', 'b1', 'b2']) void ask(name);
    expect(await ask('a3')).toBe('overloaded');
    void ask('c1'); // in the place of a2
    expect(await ask('c2')).toBe('overloaded');
    await drain();
    expect(begun.toSorted()).toEqual(['a1', 'b1', 'b2', 'c1', 'x']);
  });
});

describe('a place is left', () => {
  it('by who waited too long: overloaded, and the next one has it', async () => {
    void ask('a');
    const waiting = ask('b');
    await vi.advanceTimersByTimeAsync(999);
    expect(queue.waiting).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await waiting).toBe('overloaded');
    expect(queue.waiting).toBe(0);
    const later = ask('c');
    await drain();
    expect(await later).toBe('c');
    expect(begun).toEqual(['a', 'c']);
  });

  it('by who goes away, and their work never begins', async () => {
    const leaving = new AbortController();
    void ask('a');
    const left = ask('b', 'b', leaving.signal);
    leaving.abort();
    expect(await left).toBe('client_closed');
    expect(queue.waiting).toBe(0);
    await drain();
    expect(begun).toEqual(['a']);
    expect(await ask('c', 'c', leaving.signal)).toBe('client_closed');
  });
});
