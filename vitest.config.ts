import { defineConfig } from 'vitest/config';
import { SummaryReporter } from './test/support/summary-reporter.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Only so that a test that hangs is named: on a machine with twenty times more to do than cores everything else
    // ends long before.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    setupFiles: ['test/support/end-what-was-started.ts'],
    reporters: ['default', new SummaryReporter()],
  },
});
