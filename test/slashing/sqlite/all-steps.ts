// Work of the database worker, done at once: for tests that have a database for themselves.

import type { Steps } from '../../../enclave/slashing/sqlite/steps.ts';

export function allSteps<Result>(steps: Steps<Result>): Result {
  while (true) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
