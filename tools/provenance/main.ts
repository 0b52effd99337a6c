// `strongroom release …`: a publisher signs the provenance of a release, and people verify a folder with its files.
// Both work offline. Exit codes: specification/operating.md#exit-codes.

import { type Failure, type Group, runProgram } from '../../common/command-line/program.ts';
import type { Printed } from '../../common/command-line/terminal.ts';
import { FileRefused } from './files.ts';

export const TREE: Group<Printed> = {
  summary: 'The files of a release: sign their provenance, verify them offline',
  commands: {
    sign: async () => (await import('./sign.ts')).signCommand,
    verify: async () => (await import('./verify.ts')).verifyCommand,
  },
  examples: [
    'strongroom release verify . --key publisher.pem',
    'strongroom release sign build/release --key signing.pem',
  ],
};

export function main(argv: readonly string[], terminal: Printed = process): Promise<number> {
  return runProgram({ title: 'strongroom release', tree: TREE }, argv, terminal, explain);
}

function explain(error: unknown): Failure | undefined {
  return error instanceof FileRefused ? { problem: error.message } : undefined;
}
