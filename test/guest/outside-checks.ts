// Checks that run in order on this side of a machine and leave a line each, as those inside a guest do (results.ts).
// The first that fails ends them: what follows stands on it, and would fail for its reason.

import type { Tally } from './suite.ts';

export interface Checks {
  readonly tally: Tally;
  check(name: string, run: () => Promise<void> | void): Promise<void>;
  done(): void;
  /**
   * Nothing more can come: the check that runs has failed for this reason. When none runs any more, nothing happens.
   */
  abandon(reason: string): void;
}

export function createChecks(show: (line: string) => void): Checks {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  let current: string | undefined = 'the machine';
  const fail = (reason: unknown): void => {
    if (tally.failed > 0 || current === undefined) return;
    tally.failed = 1;
    const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
    show(`not ok - ${current}: ${text.replaceAll('\n', ' | ')}`);
  };
  return {
    tally,
    async check(name, run) {
      if (tally.failed > 0) return;
      current = name;
      const startedAt = performance.now();
      try {
        await run();
        if (tally.failed > 0) return;
        tally.passed += 1;
        show(`ok - ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
      } catch (error) {
        fail(error);
      }
    },
    done: () => {
      current = undefined;
    },
    abandon: fail,
  };
}
