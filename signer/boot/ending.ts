// The one deadline for the end of the process, even when something still hangs: nothing was signed that is not durable.

import { inTime } from '../../common/flow/in-time.ts';
import type { Clock } from '../../common/observe/clock.ts';

const UNHURRIED_MS = 15_000;
const LEAST_MS = 250;
/** The part of the grace that is kept for closing, at most; of a short grace it is a fifth. */
const CLOSING_MS = 2_000;
const CLOSING_SHARE = 5;

export type Ending = ReturnType<typeof createEnding>;

export function createEnding(clock: Pick<Clock, 'monotonic'>) {
  let endsAt: number | undefined;
  const leftMs = (): number => (endsAt === undefined ? UNHURRIED_MS : Math.max(0, endsAt - clock.monotonic()));
  return {
    /** @returns how much of it the requests under way have */
    begin(timeoutMs: number): number {
      endsAt = clock.monotonic() + Math.max(timeoutMs, LEAST_MS);
      return timeoutMs - Math.min(CLOSING_MS, timeoutMs / CLOSING_SHARE);
    },
    leftMs,
    /** Whether it ended before the deadline. */
    inTime: (work: Promise<unknown>): Promise<boolean> =>
      inTime(
        work.then(() => true),
        leftMs(),
        () => false,
      ),
  };
}
