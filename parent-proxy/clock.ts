// Time and chance as dependencies, so that tests decide both.

import { setTimeout as sleep } from 'node:timers/promises';

export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic milliseconds. */
  monotonic(): number;
  /** @throws AbortError when the signal is aborted */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** From 0, below 1: jitter. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  pause: (milliseconds, signal) => sleep(milliseconds, undefined, signal === undefined ? {} : { signal }),
  random: () => Math.random(),
};
