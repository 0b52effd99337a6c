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
export interface SignerTime extends Pick<Clock, 'now'> {
  /** Who else knows of it, where it is a clock like any other. */
  readonly witnesses?: readonly Witness[];
}

/** Whether a clock is right, another one says. */
export interface Witness {
  readonly name: string;
  /** Undefined: it says nothing. Read right before it resolves. */
  ask(signal: AbortSignal): Promise<Testimony | undefined>;
}

export interface Testimony {
  /** Milliseconds since the Unix epoch. */
  readonly time: number;
  /** False: it can only contradict, as a clock that nothing sets right. */
  readonly confirms: boolean;
}

export function clockBy({ now }: SignerTime, { monotonic }: Clock): Clock {
  return { now, monotonic };
}
