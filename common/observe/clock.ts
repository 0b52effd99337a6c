// Time as a dependency, so that tests decide what time it is; a Date.now that is replaced later is not seen.

export interface Clock {
  /** Milliseconds since the Unix epoch. For records and expiry. */
  now(): number;
  /** Milliseconds with fractions. For durations and staleness. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: Date.now,
  monotonic: performance.now.bind(performance),
};

/** For slots and lifetimes: the security module's in an enclave (specification/enclave.md#time). */
export type SignerTime = Pick<Clock, 'now'>;

export function clockBy({ now }: SignerTime, { monotonic }: Clock): Clock {
  return { now, monotonic };
}
