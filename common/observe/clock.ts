// Time as a dependency, so that tests decide what time it is.

export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. For records and expiry. */
  now(): number;
  /** Monotonic milliseconds with fractions. For durations and staleness. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
