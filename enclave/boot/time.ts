// Step "time": what slots and lifetimes are judged by. In an enclave it is the time of the security module, the
// hypervisor's, which the parent does not set; the one clock that reads it serves slashing protection and tokens alike.
// Elsewhere it is the system's clock. A module that stops answering stops nothing: the last reading is carried on.

import type { Clock } from '../../observe/clock.ts';
import { keepReading, openNsmClock } from '../tee/nsm/time.ts';
import type { World } from './world.ts';

export type SignerTime = Pick<Clock, 'now'>;

/** @throws NsmError; Error when the module's time is behind its own certificates */
export async function openTime(
  { clock, enclave, logger }: Pick<World, 'clock' | 'enclave' | 'logger'>,
  opened: AsyncDisposableStack,
): Promise<SignerTime> {
  if (enclave === undefined) return { now: () => clock.now() };
  const nsmClock = await openNsmClock(enclave.nsm, clock);
  keepReading(nsmClock, logger.module('tee'), opened);
  return nsmClock;
}

/** The clock with this time: durations stay the system's. */
export function clockBy({ now }: SignerTime, { monotonic }: Clock): Clock {
  return { now: () => now(), monotonic: () => monotonic() };
}
