// Pauses between tries, and between looks at what others read, too.

/** Half of the time at least: those that failed together do not come back together. */
export function jittered(milliseconds: number): number {
  return milliseconds * (0.5 + Math.random() / 2);
}

/** Nearly the interval: replicas that started together do not read together for long. */
export function jitteredInterval(milliseconds: number): number {
  return milliseconds * (0.9 + Math.random() / 10);
}

interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Twice the time after each failure. @param failures in a row, 1 or more */
export function backoffMs(failures: number, { firstMs, mostMs }: Backoff): number {
  return jittered(Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, MAX_DOUBLINGS)));
}

const MAX_DOUBLINGS = 20;
