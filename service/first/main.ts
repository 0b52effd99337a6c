// `strongroom try`, `strongroom init` and `strongroom migrate`: what a person runs first, with nothing but what was
// installed. Each is one command of the tree's top. Exit codes: 0 done, 1 usage, or a place that cannot be written;
// those of `strongroom slashing import` for a record that is refused.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { type Failure, type Group, runProgram } from '../../common/command-line/program.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { FirstStepFailure } from './failure.ts';

const FIRST_STEPS: Group<Terminal> = {
  summary: 'The first steps',
  commands: {
    try: async () => (await import('./try.ts')).tryIt,
    init: async () => (await import('./init.ts')).init,
    migrate: async () => (await import('./migrate.ts')).migrate,
  },
};

export function main(argv: readonly string[], terminal: Terminal = process): Promise<number> {
  return runProgram({ title: 'strongroom', tree: FIRST_STEPS }, argv, terminal, explain);
}

function explain(error: unknown): Failure | undefined {
  if (!(error instanceof FirstStepFailure)) return undefined;
  const { message: problem, remedies, exitCode = EXIT.failed } = error;
  return { problem, remedies, exitCode };
}
