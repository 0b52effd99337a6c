// Work that is done in steps, so that checks go on in between: a generator that yields how many entries the step
// handled.

export type Steps<Result> = Generator<number, Result>;

/** Entries of a step, about: a few milliseconds of the worker. */
export const STEP_ENTRIES = 1000;

/** Gathers small pieces of work, so that a step is worth its turn. `done` says when one is over, with its size. */
export function stepMeter(stepEntries: number) {
  let entries = 0;
  return {
    *done(more: number): Steps<void> {
      entries += more;
      if (entries < stepEntries) return;
      const step = entries;
      entries = 0;
      yield step;
    },
  };
}

/** The result of the work; its steps go to the meter. */
export function* metered<Result>(steps: Steps<Result>, meter: ReturnType<typeof stepMeter>): Steps<Result> {
  while (true) {
    const step = steps.next();
    if (step.done === true) {
      yield* meter.done(1);
      return step.value;
    }
    yield* meter.done(step.value);
  }
}
