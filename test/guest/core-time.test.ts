// What counts against a guest's time limit.

import { expect, it } from 'vitest';
import { countedMs, waitedForCoreMs } from './core-time.ts';

it('time without a core does not count', () => {
  expect(countedMs(100_000, 0)).toBe(100_000);
  expect(countedMs(100_000, 40_000)).toBe(60_000);
});

it('a fourth of the time counts whatever the kernel says', () => {
  expect(countedMs(100_000, 99_000)).toBe(25_000);
});

it.runIf(process.platform === 'linux')('the kernel is asked about a process; one that is gone has not waited', () => {
  expect(waitedForCoreMs(process.pid)).toBeGreaterThanOrEqual(0);
  expect(waitedForCoreMs(2 ** 30)).toBe(0);
  expect(waitedForCoreMs(undefined)).toBe(0);
});
