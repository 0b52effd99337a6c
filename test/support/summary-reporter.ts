// Prints what tests were skipped for lack of, and the last line of a test run, in the form that the project's CI reads:
// `N passed, N failed, N skipped`. A file that fails to load counts as a failure: it has tests that did not run. With
// SUMMARY_FILE the outcomes are added to those of an earlier run, which are kept: CI runs again, as root, what an
// ordinary user skipped.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

type Outcome = 'passed' | 'failed' | 'skipped';
type Outcomes = Map<string, { readonly name: string; readonly outcome: Outcome }>;

export class SummaryReporter implements Reporter {
  readonly #lacking = new Set<string>();

  onUserConsoleLog({ content }: { readonly content: string }): void {
    for (const [, need = ''] of content.matchAll(/^SKIPPED: needs (.*)$/gm)) this.#lacking.add(need);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const outcomes = outcomesBefore();
    /** A test that ran once did not fail, and was not skipped, for what it was skipped for before. */
    const add = (id: string, name: string, outcome: Outcome): void => {
      const before = outcomes.get(id)?.outcome;
      if (before === undefined || before === 'skipped' || outcome === 'failed') outcomes.set(id, { name, outcome });
    };
    for (const index of unhandledErrors.keys()) add(`error ${outcomes.size}.${index}`, '', 'failed');
    for (const module of modules) {
      if (module.errors().length > 0) add(module.id, '', 'failed');
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        add(test.id, test.fullName, state === 'passed' || state === 'failed' ? state : 'skipped');
      }
    }
    const { SUMMARY_FILE: file = '' } = process.env;
    if (file !== '') writeFileSync(file, JSON.stringify([...outcomes]));
    const count = (of: Outcome) => [...outcomes.values()].filter(({ outcome }) => outcome === of).length;
    // The default reporter prints its own summary after this hook, so ours waits for the end of the process.
    process.once('exit', () => {
      const lacking = [...this.#lacking].sort().map((need) => `  ${need}\n`);
      if (lacking.length > 0)
        process.stdout.write(`Some tests are skipped here (see make test-setup); they need\n${lacking.join('')}`);
      process.stdout.write(`${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped\n`);
    });
  }
}

/** @returns what vitest compares names with: those of the tests that the run of SUMMARY_FILE skipped */
export function skippedBefore(): RegExp | undefined {
  const skipped = [...outcomesBefore().values()].filter(({ outcome }) => outcome === 'skipped');
  if (skipped.length === 0) return undefined;
  return new RegExp(`^(?:${skipped.map(({ name }) => RegExp.escape(name)).join('|')})$`);
}

function outcomesBefore(): Outcomes {
  const { SUMMARY_FILE: file = '' } = process.env;
  if (file === '' || !existsSync(file)) return new Map();
  return new Map(JSON.parse(readFileSync(file, 'utf8')) as [string, { name: string; outcome: Outcome }][]);
}
