// `strongroom eif …`: enclave images. No network, no cloud. Exit codes: specification/operating.md#exit-codes.

import { type Failure, type Group, runProgram } from '../common/command-line/program.ts';
import type { Printed } from '../common/command-line/terminal.ts';
import { BuildError, WrongUsage } from './inputs.ts';

export const EIF_TREE: Group<Printed> = {
  summary: 'Images for AWS Nitro Enclaves',
  commands: {
    build: async () => (await import('./commands/build.ts')).buildCommand,
    describe: async () => (await import('./commands/describe.ts')).describeCommand,
    compare: async () => (await import('./commands/compare.ts')).compareCommand,
  },
  examples: [
    'strongroom eif build --image image.yaml --ceremony ceremony.yaml --config strongroom.yaml',
    'strongroom eif compare mine/image.eif theirs/image.eif',
  ],
};

export function main(argv: readonly string[], terminal: Printed = process): Promise<number> {
  return runProgram({ title: 'strongroom eif', tree: EIF_TREE }, argv, terminal, explain);
}

function explain(error: unknown): Failure | undefined {
  if (!(error instanceof BuildError)) return undefined;
  return { problem: error.message, remedies: error.details, isUsage: error instanceof WrongUsage };
}
