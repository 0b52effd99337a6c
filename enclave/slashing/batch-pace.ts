// Decides when the next batch of slashing checks begins, and how many messages of groups it may contain. Under load,
// batches keep a distance, because a store that gets each message alone does less work. A message for one key must not
// wait long for groups.

import type { Clock } from '../../observe/clock.ts';
import type { CheckQueue, WaitingCheck } from './check-queue.ts';
import type { SlashingBackend } from './types.ts';

/**
 * Messages of groups in one commit, at most: when no single message has come for a second, when one has, and beside
 * one. A single message waits for one commit and then for its own: on SQLite for 3, 1 and 0.5 ms, and for two writes to
 * the disk.
 */
const MAX_YIELDING = { undisturbed: 128, lately: 48, beside: 16 };
const LATELY_MS = 1000;

export interface BatchPace {
  /** A single message came: one that is in no group. */
  singleCame(): void;
  began(checks: readonly WaitingCheck[]): void;
  /**
   * Batches that carry several messages keep their distance; one message by itself, after another by itself, does
   * not. Single messages keep it from others of their kind, and not from groups, which are always there.
   */
  pauseMilliseconds(batchesUnderWay: number): number;
  /** Messages of groups in the next batch, at most. */
  mostYielding(): number;
}

export function batchPace(
  queue: Pick<CheckQueue, 'takeable' | 'hasOthers'>,
  { batchLimits }: Pick<SlashingBackend, 'batchLimits'>,
  clock: Pick<Clock, 'monotonic'>,
): BatchPace {
  let lastSingleAt = Number.NEGATIVE_INFINITY;
  /** When a batch began that had single messages. */
  let lastOfOthersAt = Number.NEGATIVE_INFINITY;
  let lastBatch = { startedAt: Number.NEGATIVE_INFINITY, size: 0 };
  return {
    singleCame() {
      lastSingleAt = clock.monotonic();
    },
    began(checks) {
      const startedAt = clock.monotonic();
      lastBatch = { startedAt, size: checks.length };
      if (checks.some(({ yields }) => !yields)) lastOfOthersAt = startedAt;
    },
    pauseMilliseconds(batchesUnderWay) {
      const alone = queue.takeable === 1 && batchesUnderWay === 0 && lastBatch.size <= 1;
      if (alone) return 0;
      const last = queue.hasOthers ? lastOfOthersAt : lastBatch.startedAt;
      return last + batchLimits.minIntervalMs - clock.monotonic();
    },
    mostYielding() {
      if (queue.hasOthers) return MAX_YIELDING.beside;
      const isUndisturbed = clock.monotonic() - lastSingleAt > LATELY_MS;
      return isUndisturbed ? MAX_YIELDING.undisturbed : MAX_YIELDING.lately;
    },
  };
}
