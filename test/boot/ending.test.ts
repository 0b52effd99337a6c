// One deadline for the whole of ending: what the requests have of it, what is left for the rest, and what happens to
// work that hangs.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createEnding } from '../../signer/boot/ending.ts';

const HANGS = new Promise<never>(() => undefined);

let now: number;
const ending = () => createEnding({ monotonic: () => now });

beforeEach(() => {
  now = 5_000;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => vi.useRealTimers());

describe('the deadline of ending', () => {
  it.each([
    [25_000, 23_000],
    [10_000, 8_000],
    [1_000, 800],
    [0, 0],
  ])('of %i ms leaves %i ms to the requests', (timeoutMs, forRequestsMs) => {
    expect(ending().begin(timeoutMs)).toBe(forRequestsMs);
  });

  it('is one for everything that follows', () => {
    const subject = ending();
    subject.begin(25_000);
    now += 23_000;
    expect(subject.leftMs()).toBe(2_000);
    now += 3_000;
    expect(subject.leftMs()).toBe(0);
  });

  it('without any grace is a quarter of a second: a store that is well closes in order', () => {
    const subject = ending();
    subject.begin(0);
    expect(subject.leftMs()).toBe(250);
  });

  it('leaves behind what hangs, when it is over and not before', async () => {
    const subject = ending();
    subject.begin(1_000);
    now += 800;
    let outcome: boolean | undefined;
    void subject.inTime(HANGS).then((inTime) => {
      outcome = inTime;
    });
    await vi.advanceTimersByTimeAsync(199);
    expect(outcome).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(outcome).toBe(false);
  });

  it('is not waited for by what ends before, and hides no failure', async () => {
    const subject = ending();
    subject.begin(1_000);
    expect(await subject.inTime(Promise.resolve())).toBe(true);
    await expect(subject.inTime(Promise.reject(new Error('TEST')))).rejects.toThrow('TEST');
    expect(vi.getTimerCount()).toBe(0);
  });
});
