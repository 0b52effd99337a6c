// The background pruner: small steps, patient with faults, and gone when it is told to stop.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  PRUNE_IDLE_PAUSE_MS,
  PRUNE_STEP_ENTRIES,
  PRUNE_STEP_PAUSE_MS,
  PRUNE_YIELD_MS,
  startPruning,
} from '../../../signer/slashing/operations/prune-loop.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { quietLog } from '../../support/slashing.ts';

type PruneStep = (maxEntries: number) => Promise<number>;

let time = 0;
const isBusy = () => false;
let hindered: 'slashing_unbound' | undefined;
const hindrance = () => hindered;
const clock = { now: () => time, monotonic: () => time };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  hindered = undefined;
  vi.useRealTimers();
});

it('steps of a bounded size, shortly after each other while there is work', async () => {
  const left = [520, 120, 0];
  const pruneStep = vi.fn<PruneStep>(async () => left.shift() ?? 0);
  const pruning = startPruning({ hindrance, backend: { pruneStep }, isBusy, log: quietLog, clock });
  await vi.advanceTimersByTimeAsync(2 * PRUNE_STEP_PAUSE_MS);
  expect(pruneStep.mock.calls).toEqual([[PRUNE_STEP_ENTRIES], [PRUNE_STEP_ENTRIES], [PRUNE_STEP_ENTRIES]]);
  await pruning.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('a step waits while checks do, a second at most', async () => {
  let checks = 1;
  const pruneStep = vi.fn<PruneStep>(async () => 8);
  const pruning = startPruning({ hindrance, backend: { pruneStep }, isBusy: () => checks > 0, log: quietLog, clock });
  await vi.advanceTimersByTimeAsync(PRUNE_YIELD_MS - 1);
  expect(pruneStep).toHaveBeenCalledTimes(1); // that of the start
  await vi.advanceTimersByTimeAsync(2 * PRUNE_STEP_PAUSE_MS);
  expect(pruneStep).toHaveBeenCalledTimes(2);
  checks = 0;
  await vi.advanceTimersByTimeAsync(4 * PRUNE_STEP_PAUSE_MS);
  expect(pruneStep.mock.calls.length).toBeGreaterThanOrEqual(5);
  await pruning.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it.each([
  ['a slot', 'quick', 1, PRUNE_IDLE_PAUSE_MS.least],
  ['a thousand times as long as it took', 'longer', 30, 30_000],
  ['an epoch', 'very long', 5_000, PRUNE_IDLE_PAUSE_MS.most],
])('after a look that found nothing the next waits %s: one that was %s', async (_waits, _how, tookMs, pauseMs) => {
  const pruneStep = vi.fn<PruneStep>(async () => {
    time += tookMs;
    return 0;
  });
  const pruning = startPruning({ hindrance, backend: { pruneStep }, isBusy, log: quietLog, clock });
  await vi.advanceTimersByTimeAsync(pauseMs - 1);
  expect(pruneStep).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(pruneStep).toHaveBeenCalledTimes(2);
  await pruning.stop();
});

it('steps that take as long as the pause delete twice what a million keys make old in a slot', async () => {
  const [SLOT_MS, VOTES_OF_A_SLOT] = [12_000, 1_000_000 / 32];
  let deleted = 0;
  const pruneStep = async (maxEntries: number) => {
    await new Promise((resolve) => void setTimeout(resolve, PRUNE_STEP_PAUSE_MS));
    deleted += maxEntries;
    return maxEntries;
  };
  const pruning = startPruning({ hindrance, backend: { pruneStep }, isBusy, log: quietLog, clock });
  await vi.advanceTimersByTimeAsync(SLOT_MS);
  expect(deleted).toBeGreaterThanOrEqual(2 * VOTES_OF_A_SLOT);
  const stopping = pruning.stop();
  await vi.advanceTimersByTimeAsync(PRUNE_STEP_PAUSE_MS);
  await stopping;
});

it('a step that fails is tried again after the longest pause', async () => {
  const pruneStep = vi.fn<PruneStep>().mockRejectedValueOnce(new Error('no disk')).mockResolvedValue(0);
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (_fields: object, message: string) => void warnings.push(message) };
  const pruning = startPruning({ hindrance, backend: { pruneStep }, isBusy, log, clock });
  await vi.advanceTimersByTimeAsync(PRUNE_IDLE_PAUSE_MS.most - 1);
  expect(pruneStep).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(pruneStep).toHaveBeenCalledTimes(2);
  expect(warnings).toHaveLength(1);
  await pruning.stop();
});

it('stopping waits for the step under way', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const pruning = startPruning({ hindrance, backend: { pruneStep: () => promise }, isBusy, log: quietLog, clock });
  let stopped = false;
  const stopping = pruning.stop().then(() => {
    stopped = true;
  });
  await vi.advanceTimersByTimeAsync(1000);
  expect(stopped).toBe(false);
  resolve(5);
  await stopping;
  expect(vi.getTimerCount()).toBe(0);
});

it('leaves a store alone that may not be used, without a word, and goes on when it may', async () => {
  hindered = 'slashing_unbound';
  const pruneStep = vi.fn<PruneStep>(async () => 0);
  const log = recordingLog();
  const pruning = startPruning({ hindrance, backend: { pruneStep }, isBusy, log, clock });
  await vi.advanceTimersByTimeAsync(3 * PRUNE_IDLE_PAUSE_MS.least);
  expect([pruneStep.mock.calls, log.lines]).toEqual([[], []]);
  hindered = undefined;
  await vi.advanceTimersByTimeAsync(PRUNE_IDLE_PAUSE_MS.least);
  expect(pruneStep).toHaveBeenCalled();
  await pruning.stop();
});
