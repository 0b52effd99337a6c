// Trying again for a bounded time, with a pause that doubles and jitter on it, so that many enclaves of one parent do
// not knock at once.

import { setTimeout as pause } from 'node:timers/promises';

export interface Patience {
  readonly patienceMs: number;
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
}

/** @param onFailure told of every attempt that is followed by another @throws the last error; that of the signal */
export async function keepTrying<T>(
  attempt: () => Promise<T>,
  { patienceMs, firstPauseMs, maxPauseMs }: Patience,
  {
    signal,
    onFailure,
  }: { readonly signal?: AbortSignal; readonly onFailure?: (error: unknown, attempt: number) => void } = {},
): Promise<T> {
  const until = performance.now() + patienceMs;
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      const pauseMs = Math.min(firstPauseMs * 2 ** (attempts - 1), maxPauseMs) * (0.5 + Math.random() / 2);
      if (signal?.aborted === true || performance.now() + pauseMs > until) throw error;
      onFailure?.(error, attempts);
      await pause(pauseMs, undefined, signal === undefined ? {} : { signal });
    }
  }
}
