// The background pruner: small steps, patient with faults, and gone when it is told to stop.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  PRUNE_IDLE_PAUSE_MS,
  PRUNE_STEP_ENTRIES,
  PRUNE_STEP_PAUSE_MS,
  startPruning,
} from '../../signer/slashing/operations/pruning.ts';
import { quietLog } from '../support/slashing.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

it('steps of a bounded size, shortly after each other while there is work, rarely when there is none', async () => {
  const left = [520, 120, 0, 7, 0];
  const pruneStep = vi.fn<(maxEntries: number) => Promise<number>>(async () => left.shift() ?? 0);
  const onPruned = vi.fn<(entries: number) => void>();
  const pruning = startPruning({ onPruned }, { backend: { pruneStep }, log: quietLog });

  await vi.advanceTimersByTimeAsync(2 * PRUNE_STEP_PAUSE_MS);
  expect(pruneStep.mock.calls).toEqual([[PRUNE_STEP_ENTRIES], [PRUNE_STEP_ENTRIES], [PRUNE_STEP_ENTRIES]]);
  await vi.advanceTimersByTimeAsync(PRUNE_IDLE_PAUSE_MS - 1);
  expect(pruneStep).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(1);
  expect(pruneStep).toHaveBeenCalledTimes(4);
  expect(onPruned.mock.calls).toEqual([[520], [120], [7]]);
  await pruning.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('steps that take as long as the pause delete twice what a million keys make old in a slot', async () => {
  const [SLOT_MS, VOTES_OF_A_SLOT] = [12_000, 1_000_000 / 32];
  const pruneStep = async (maxEntries: number) => {
    await new Promise((resolve) => void setTimeout(resolve, PRUNE_STEP_PAUSE_MS));
    return maxEntries;
  };
  let deleted = 0;
  const onPruned = (entries: number) => {
    deleted += entries;
  };
  const pruning = startPruning({ onPruned }, { backend: { pruneStep }, log: quietLog });
  await vi.advanceTimersByTimeAsync(SLOT_MS);
  expect(deleted).toBeGreaterThanOrEqual(2 * VOTES_OF_A_SLOT);
  const stopping = pruning.stop();
  await vi.advanceTimersByTimeAsync(PRUNE_STEP_PAUSE_MS);
  await stopping;
});

it('a step that fails is tried again after the long pause', async () => {
  const pruneStep = vi
    .fn<(maxEntries: number) => Promise<number>>()
    .mockRejectedValueOnce(new Error('no disk'))
    .mockResolvedValue(0);
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (_fields: object, message: string) => void warnings.push(message) };
  const pruning = startPruning({}, { backend: { pruneStep }, log });
  await vi.advanceTimersByTimeAsync(PRUNE_IDLE_PAUSE_MS);
  expect(pruneStep).toHaveBeenCalledTimes(2);
  expect(warnings).toHaveLength(1);
  await pruning.stop();
});

it('stopping waits for the step under way', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const pruning = startPruning({}, { backend: { pruneStep: () => promise }, log: quietLog });
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
