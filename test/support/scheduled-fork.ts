// The one fork in force at an epoch: for tests that state what a schedule is.

import { type ForkSchedule, possibleForksAt } from '../../signer/sign/message-root.ts';
import type { Fork } from '../../signer/sign/networks.ts';

/** Undefined where the schedule does not say. */
export function scheduledForkAt(schedule: ForkSchedule, epoch: number): Fork | undefined {
  const possible = possibleForksAt(schedule, epoch);
  return possible.length === 1 ? possible[0] : undefined;
}
