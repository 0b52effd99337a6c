// Step "time": the clock for slots and lifetimes. In an enclave, it is the time of the security module, which comes
// from the hypervisor and which the parent cannot set. One clock reads it, for slashing protection and tokens alike.
// Elsewhere it is the system's clock. When the module stops answering, the clock runs on from the last reading.

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
