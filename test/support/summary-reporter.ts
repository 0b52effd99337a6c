// Prints the last line of a test run, in the form that the project's CI reads: `N passed, N failed, N skipped`.
// A file that fails to load counts as a failure: it has tests that did not run.

import type { Reporter, TestModule } from 'vitest/node';

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let [passed, failed, skipped] = [0, unhandledErrors.length, 0];
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped += 1;
      }
    }
    // The default reporter prints its own summary after this hook, so ours waits for the end of the process.
    process.once('exit', () => process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`));
  }
}
