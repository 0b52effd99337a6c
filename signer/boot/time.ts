// The clock for slots and lifetimes: the system's in a service, the security module's in an enclave
// (specification/enclave.md#time), for slashing protection and tokens alike.

import type { Clock } from '../../common/observe/clock.ts';

export type SignerTime = Pick<Clock, 'now'>;

export function clockBy({ now }: SignerTime, { monotonic }: Clock): Clock {
  return { now: () => now(), monotonic: () => monotonic() };
}
