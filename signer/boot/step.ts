// A step of the boot: it has a result, or ends the start with a message that names the step. What a step waits for may
// belong to another (a disk, a service, a library) and never come: the log says so, and then the start ends.

import { inTime } from '../../common/flow/in-time.ts';
import type { Log } from '../../common/observe/log.ts';

const SLOW_MS = 10_000;
const LIMIT_MS = 300_000;

export class StartupError extends Error {
  constructor(stepName: string, cause: unknown) {
    super(`${stepName}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'StartupError';
  }
}

export async function step<T>(name: string, run: () => Promise<T> | T): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new StartupError(name, error);
  }
}

/** Steps that are waited for so long, and no longer. */
export function stepsInTime(log: Log, { slowMs = SLOW_MS, limitMs = LIMIT_MS } = {}): typeof step {
  return (name, run) =>
    step(name, async () => {
      const slow = setTimeout(() => log.warn({ step: name }, 'the start still waits for this step'), slowMs);
      try {
        return await inTime(Promise.resolve(run()), limitMs, () => {
          throw new Error(`it did not end within ${limitMs / 1000} s: what it waits for does not answer`);
        });
      } finally {
        clearTimeout(slow);
      }
    });
}
