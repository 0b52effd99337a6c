// Runs work that is done in steps (steps.ts): one step of each in turn, and whatever was asked meanwhile between two
// steps.

import type { Steps } from './steps.ts';

export interface StepRunner {
  /** `settle` is called once, with the result or with what was thrown; not when the runner is stopped first. */
  begin(steps: Steps<unknown>, settle: (outcome: StepOutcome) => void): void;
  /** No step is done any more; what the work holds open is closed. */
  stop(): void;
}

export type StepOutcome = { readonly result: unknown } | { readonly error: unknown };

interface Job {
  readonly steps: Steps<unknown>;
  readonly settle: (outcome: StepOutcome) => void;
}

export function stepRunner(): StepRunner {
  const jobs: Job[] = [];

  function turn(): void {
    const job = jobs.shift();
    if (job === undefined) return;
    const outcome = stepOf(job.steps);
    if (outcome === undefined) jobs.push(job);
    if (jobs.length > 0) setImmediate(turn);
    if (outcome !== undefined) job.settle(outcome);
  }

  return {
    begin(steps, settle) {
      jobs.push({ steps, settle });
      if (jobs.length === 1) setImmediate(turn);
    },
    stop() {
      for (const { steps } of jobs.splice(0)) steps.return(undefined);
    },
  };
}

/** Undefined: there are more. */
function stepOf(steps: Steps<unknown>): StepOutcome | undefined {
  try {
    const { done, value } = steps.next();
    return done === true ? { result: value } : undefined;
  } catch (error) {
    return { error };
  }
}
