// A limit for a promise that belongs to another: a library, a worker, a system call. It may never settle.

/** @param onLate answers in its place, or throws, when the time is over */
export async function inTime<Result, Late>(
  work: Promise<Result>,
  milliseconds: number,
  onLate: () => Late,
): Promise<Result | Late> {
  const { promise, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(resolve, milliseconds, 'late');
  try {
    const first = await Promise.race([work.then((result) => ({ result })), promise]);
    return first === 'late' ? onLate() : first.result;
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined); // of one that fails after its time nothing is heard
  }
}

/**
 * Asks what `make` gives. When no answer comes in time, what was asked is given up with everything that waits in it,
 * and the next call asks another: libraries hand one promise to all who ask, also the one that never settles.
 */
export function renewedWhenLate<Given extends unknown[], Result>(
  make: () => (...given: Given) => Promise<Result>,
  milliseconds: number,
  onLate: () => never,
): (...given: Given) => Promise<Result> {
  let current = make();
  return (...given) => {
    const asked = current;
    return inTime(asked(...given), milliseconds, () => {
      if (current === asked) current = make();
      return onLate();
    });
  };
}
