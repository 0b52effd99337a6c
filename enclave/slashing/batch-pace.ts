// When the next batch of slashing checks begins, and how much of it may be messages of groups: what came alone is not
// to wait for those, and a store that is asked for each message by itself does less.

import type { Clock } from '../../observe/clock.ts';
import type { CheckQueue, WaitingCheck } from './check-queue.ts';
import type { SlashingBackend } from './types.ts';

/**
 * Messages of groups in one commit, at most: when nothing has come alone for a second, when something has, and beside
 * what came alone. Such a message waits for one commit and then for its own: on SQLite for 3, 1 and 0.5 ms, and for
 * two writes to the disk.
 */
const MAX_YIELDING = { undisturbed: 128, lately: 48, beside: 16 };
const LATELY_MS = 1000;

export interface BatchPace {
  /** A message came that is in no group. */
  cameAlone(): void;
  began(checks: readonly WaitingCheck[]): void;
  /**
   * Batches that carry several messages keep their distance; a request that is alone, after another alone, does not.
   * Messages that came alone keep it from others of their kind, and not from groups, which are always there.
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
  let lastAloneAt = Number.NEGATIVE_INFINITY;
  /** When a batch began that had messages which came alone. */
  let lastOfOthersAt = Number.NEGATIVE_INFINITY;
  let lastBatch = { startedAt: Number.NEGATIVE_INFINITY, size: 0 };
  return {
    cameAlone() {
      lastAloneAt = clock.monotonic();
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
      const isUndisturbed = clock.monotonic() - lastAloneAt > LATELY_MS;
      return isUndisturbed ? MAX_YIELDING.undisturbed : MAX_YIELDING.lately;
    },
  };
}
