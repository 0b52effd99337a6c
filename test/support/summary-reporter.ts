// Prints what tests were skipped for lack of, and the last line of a test run, in the form that the project's CI reads:
// `N passed, N failed, N skipped`. A file that fails to load counts as a failure: it has tests that did not run. With
// SUMMARY_FILE the outcomes are added to those of an earlier run: CI runs some files again, as root.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

type Outcome = 'passed' | 'failed' | 'skipped';

export class SummaryReporter implements Reporter {
  readonly #lacking = new Set<string>();

  onUserConsoleLog({ content }: { readonly content: string }): void {
    for (const [, need = ''] of content.matchAll(/^SKIPPED: needs (.*)$/gm)) this.#lacking.add(need);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const outcomes = outcomesBefore();
    /** A test that ran once did not fail, and was not skipped, for what it was skipped for before. */
    const add = (name: string, outcome: Outcome): void => {
      const before = outcomes.get(name);
      if (before === undefined || before === 'skipped' || outcome === 'failed') outcomes.set(name, outcome);
    };
    for (const index of unhandledErrors.keys()) add(`error ${outcomes.size}.${index}`, 'failed');
    for (const module of modules) {
      if (module.errors().length > 0) add(module.id, 'failed');
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        add(test.id, state === 'passed' || state === 'failed' ? state : 'skipped');
      }
    }
    const { SUMMARY_FILE: file = '' } = process.env;
    if (file !== '') writeFileSync(file, JSON.stringify([...outcomes]));
    const count = (outcome: Outcome) => [...outcomes.values()].filter((one) => one === outcome).length;
    // The default reporter prints its own summary after this hook, so ours waits for the end of the process.
    process.once('exit', () => {
      const lacking = [...this.#lacking].sort().map((need) => `  ${need}\n`);
      if (lacking.length > 0)
        process.stdout.write(`Some tests are skipped here (see make test-setup); they need\n${lacking.join('')}`);
      process.stdout.write(`${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped\n`);
    });
  }
}

function outcomesBefore(): Map<string, Outcome> {
  const { SUMMARY_FILE: file = '' } = process.env;
  return new Map(
    file !== '' && existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as [string, Outcome][]) : [],
  );
}
