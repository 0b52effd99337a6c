// `strongroom try` and `strongroom init`: what a person runs first, with nothing but what was installed. Each is one
// command of the tree's top. Exit codes: 0 done, 1 usage, or a place that cannot be written.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { OutputFileError } from '../../common/command-line/output-file.ts';
import { type Failure, type Group, runProgram } from '../../common/command-line/program.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { FirstStepFailure } from './failure.ts';

export const FIRST_STEPS: Group<Terminal> = {
  summary: 'The first steps',
  commands: {
    try: async () => (await import('./try.ts')).tryIt,
    init: async () => (await import('./init.ts')).init,
  },
};

export function main(argv: readonly string[], terminal: Terminal = process): Promise<number> {
  return runProgram({ title: 'strongroom', tree: FIRST_STEPS }, argv, terminal, explain);
}

function explain(error: unknown): Failure | undefined {
  if (error instanceof FirstStepFailure) return { problem: error.message, remedies: error.remedies };
  if (error instanceof OutputFileError)
    return {
      problem: error.message,
      remedies: error.advice === undefined ? [] : [error.advice],
      exitCode: EXIT.failed,
    };
  return undefined;
}
