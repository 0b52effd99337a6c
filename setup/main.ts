// `strongroom setup …`: `tables` makes the DynamoDB tables; `iam` and `kms-policy` print policies and call nothing.
// Exit codes: specification/operating.md#exit-codes.

import { EXIT, type ExitCode } from '../common/command-line/exit-codes.ts';
import { type Failure, type Group, runProgram } from '../common/command-line/program.ts';
import type { Piped } from '../common/command-line/terminal.ts';
import { writeViolations } from '../common/command-line/violations-report.ts';
import { ConfigurationViolated, InputRefused } from './inputs.ts';
import { KeyPolicyRefused } from './key-policy.ts';

type Terminal = Omit<Piped, 'stdin'>;

export const SETUP_TREE: Group<Terminal> = {
  summary: 'What a deployment needs before its first start: tables, and the policies of keys, roles and tables',
  commands: {
    tables: async () => (await import('./commands/tables.ts')).tables,
    'kms-policy': async () => (await import('./commands/kms-policy.ts')).kmsPolicy,
    iam: async () => (await import('./commands/iam.ts')).iam,
  },
  examples: [
    'strongroom setup tables -c strongroom.yaml',
    'strongroom setup kms-policy --help',
    'strongroom setup iam -c strongroom.yaml --for signer --phase first-boot',
  ],
};

export function main(argv: readonly string[], terminal: Terminal = process): Promise<number> {
  return runProgram({ title: 'strongroom setup', tree: SETUP_TREE }, argv, terminal, explain);
}

function explain(error: unknown, terminal: Terminal): Failure | ExitCode | undefined {
  if (error instanceof ConfigurationViolated) {
    writeViolations(error.violations, terminal);
    return EXIT.configuration;
  }
  const isRefusal = error instanceof InputRefused || error instanceof KeyPolicyRefused;
  return isRefusal ? { problem: error.message } : undefined;
}
