// Batches keep a distance under load: a store that gets each message alone does less work.

import type { Clock } from '../../common/observe/clock.ts';
import type { CheckQueue, WaitingCheck } from './check-queue.ts';
import type { SlashingBackend } from './types.ts';

/**
 * Messages of batches in one commit: when no single message has come for a second; when one has; when the commit holds
 * a single message, which waits for it.
 */
const MAX_YIELDING = { undisturbed: 128, lately: 48, beside: 16 };
const LATELY_MS = 1000;

export function batchPace(
  queue: Pick<CheckQueue, 'takeable' | 'hasOthers'>,
  { batchLimits }: Pick<SlashingBackend, 'batchLimits'>,
  clock: Pick<Clock, 'monotonic'>,
) {
  let lastSingleAt = Number.NEGATIVE_INFINITY;
  let lastOfOthersAt = Number.NEGATIVE_INFINITY;
  let lastBatch = { startedAt: Number.NEGATIVE_INFINITY, size: 0 };
  return {
    singleCame(): void {
      lastSingleAt = clock.monotonic();
    },
    began(checks: readonly WaitingCheck[]): void {
      const startedAt = clock.monotonic();
      lastBatch = { startedAt, size: checks.length };
      if (checks.some(({ yields }) => !yields)) lastOfOthersAt = startedAt;
    },
    /** One message by itself, after another by itself, keeps no distance, nor single messages from groups. */
    pauseMilliseconds(batchesUnderWay: number): number {
      const alone = queue.takeable === 1 && batchesUnderWay === 0 && lastBatch.size <= 1;
      if (alone) return 0;
      const last = queue.hasOthers ? lastOfOthersAt : lastBatch.startedAt;
      return last + batchLimits.minIntervalMs - clock.monotonic();
    },
    mostYielding(): number {
      if (queue.hasOthers) return MAX_YIELDING.beside;
      const isUndisturbed = clock.monotonic() - lastSingleAt > LATELY_MS;
      return isUndisturbed ? MAX_YIELDING.undisturbed : MAX_YIELDING.lately;
    },
  };
}
