// What the soak calls flat: a sawtooth that comes back to its floor, and no leak of a megabyte a minute, in the heap or
// outside of it.

import { describe, expect, it } from 'vitest';
import { randomChoices } from '../../../test/support/fleet/random.ts';
import { chartOf, linesOf } from '../../bench/soak-chart.ts';
import { aliveVerdict, floorOf } from '../../bench/soak-verdict.ts';

const SAMPLES_PER_MINUTE = 12;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/** It grows by 100 MB until V8 collects, each three to eight minutes, and for ten minutes to its size. */
function residentOf(seed: number, minutes: number, leakPerMinute = 0): number[] {
  const random = randomChoices(seed);
  let collectedAt = 0;
  let period = 5;
  return Array.from({ length: minutes * SAMPLES_PER_MINUTE }, (_, sample) => {
    const minute = sample / SAMPLES_PER_MINUTE;
    if (minute - collectedAt >= period) {
      collectedAt = minute;
      period = 3 + random.below(6);
    }
    const tooth = (100 * (minute - collectedAt)) / 8;
    return 180 + 4 * Math.min(10, minute) + tooth + random.below(5) + leakPerMinute * minute;
  });
}

describe('the floor of resident memory', () => {
  it.each(SEEDS)('is flat when only the sawtooth grows, seed %s', (seed) => {
    expect(floorOf(residentOf(seed, 120), 120).verdict).toBe('flat');
  });

  it.each(SEEDS)('rises with a leak of 1 MB a minute, in two hours and in half an hour, seed %s', (seed) => {
    expect(floorOf(residentOf(seed, 120, 1), 120).verdict).toBe('RISES');
    expect(floorOf(residentOf(seed, 30, 1), 30).verdict).not.toBe('flat');
  });

  it('is not called flat in a run that is too short to say', () => {
    expect(floorOf(residentOf(1, 5), 5).verdict).not.toBe('flat');
    expect(floorOf([200], 1).verdict).toBe('UNDECIDED');
  });

  it('is judged alike from the chart', () => {
    for (const leak of [0, 1]) {
      const values = residentOf(1, 120, leak);
      const others = residentOf(2, 120);
      const lines = [
        { name: 'sqlite', color: '#1f77b4', values },
        { name: 'postgres', color: '#d62728', values: others },
      ];
      const svg = chartOf(
        [
          { title: 'memory (MB)', lines },
          { title: 'descriptors', lines },
        ],
        120,
      );
      const [first, second] = linesOf(svg, 'memory (MB)');
      expect([first?.name, second?.name]).toEqual(['sqlite', 'postgres']);
      expect(floorOf(first?.values ?? [], 120).verdict).toBe(floorOf(values, 120).verdict);
      expect(floorOf(second?.values ?? [], 120).verdict).toBe('flat');
    }
  });
});

describe('what is alive after full collections', () => {
  it('is flat within what differs from one to the next', () => {
    expect(aliveVerdict([56.8, 57.9, 58.2], 120)).toBe('flat');
    expect(aliveVerdict([56.8, 56.0, 58.2], 5)).toBe('flat');
  });

  it('rises with a leak of 1 MB a minute', () => {
    expect(aliveVerdict([56.8, 96.8, 136.8], 120)).toBe('RISES');
    expect(aliveVerdict([56.8, 66.8, 76.8], 30)).toBe('RISES');
  });

  it('is not called flat when it was not measured twice', () => {
    expect(aliveVerdict([56.8], 120)).toBe('UNDECIDED');
  });
});
