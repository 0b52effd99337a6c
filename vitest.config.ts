import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LONGEST_WAIT_MS } from './test/support/patience.ts';
import { SummaryReporter, skippedBefore } from './test/support/summary-reporter.ts';

const testNamePattern = skippedBefore();

export default defineConfig({
  test: {
    ...(testNamePattern === undefined ? {} : { testNamePattern }),
    include: ['test/**/*.test.ts', 'lab/test/**/*.test.ts'],
    pool: 'forks',
    // No test reads or writes the profile of who runs it: there is no folder for one.
    env: { XDG_CONFIG_HOME: '/dev/null/none' },
    // A test of programs waits for most of its time, so three files share a core.
    maxWorkers: Math.min(8, 3 * availableParallelism()),
    // Tests that wait for two minutes each, and do little, wait at once (it.concurrent).
    maxConcurrency: 8,
    // Only so that a test that hangs is named: on a machine with twenty times more to do than cores everything else
    // ends long before.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // A worker on such a machine takes more than the ten seconds that it is given to end.
    teardownTimeout: 300_000,
    expect: { poll: { timeout: LONGEST_WAIT_MS } },
    globalSetup: ['test/support/compile-cache.ts'],
    setupFiles: ['test/support/end-what-was-started.ts'],
    reporters: ['default', new SummaryReporter()],
  },
});
