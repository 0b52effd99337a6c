// Time and chance as dependencies, so that tests decide both.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock as clock } from '../common/observe/clock.ts';

export interface PausingClock extends Clock {
  /** @throws AbortError when the signal is aborted */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** From 0, below 1: jitter. */
  random(): number;
}

export const pausingClock: PausingClock = {
  ...clock,
  pause: (milliseconds, signal) => sleep(milliseconds, undefined, signal === undefined ? {} : { signal }),
  random: () => Math.random(),
};
