// Time as a dependency, so that tests decide what time it is.

export interface Clock {
  /** Milliseconds since the Unix epoch. For records and expiry. */
  now(): number;
  /** Milliseconds with fractions. For durations and staleness. */
  monotonic(): number;
}

/** The functions of the time at which this file was loaded: a later replacement of Date.now is not seen. */
export const systemClock: Clock = {
  now: Date.now,
  monotonic: performance.now.bind(performance),
};

/** For slots and lifetimes: the security module's in an enclave (specification/enclave.md#time). */
export type SignerTime = Pick<Clock, 'now'>;

export function clockBy({ now }: SignerTime, { monotonic }: Clock): Clock {
  return { now, monotonic };
}
