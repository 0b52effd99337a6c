// `strongroom setup …`: what a deployment needs before its first start. `tables` makes the DynamoDB tables; `iam` and
// `kms-policy` print policies and call nothing. Exit codes: 0 done, 1 usage or a policy that is refused, 70 a bug, 78 a
// configuration that cannot be used (specification/operating.md#exit-codes).

import { ArgumentsError, withAdvice } from '../command-line/arguments.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import { sayFailure, sayNoCommand, sayWrongUsage } from '../command-line/failure.ts';
import type { Piped } from '../command-line/terminal.ts';
import { writeViolations } from '../command-line/violations.ts';
import type { SetupCommand } from './commands/command.ts';
import { iam } from './commands/iam.ts';
import { kmsPolicy } from './commands/kms-policy.ts';
import { ConfigurationViolated, InputRefused } from './inputs.ts';
import { KeyPolicyRefused } from './key-policy.ts';

const COMMANDS: ReadonlyMap<string, SetupCommand> = new Map([
  ['iam', iam],
  ['kms-policy', kmsPolicy],
]);

/** @returns the exit code */
export async function main(argv: readonly string[], terminal: Omit<Piped, 'stdin'> = process): Promise<number> {
  const [name = '', ...rest] = argv;
  if (name === 'tables') {
    const { runSetupCommand } = await import('./commands/tables.ts');
    return runSetupCommand(rest, terminal);
  }
  const command = COMMANDS.get(name);
  if (command === undefined) {
    sayNoCommand(terminal, 'strongroom setup', name, ['tables', ...COMMANDS.keys()]);
    return EXIT.failed;
  }
  return run(`strongroom setup ${name}`, () => command.run(rest, terminal), terminal);
}

function run(title: string, perform: () => void, terminal: Pick<Piped, 'stderr' | 'env'>): number {
  try {
    perform();
    return EXIT.ok;
  } catch (error) {
    if (error instanceof ConfigurationViolated) {
      writeViolations(error.violations, terminal);
      return EXIT.configuration;
    }
    if (error instanceof ArgumentsError) sayWrongUsage(terminal, title, withAdvice(error));
    else if (error instanceof InputRefused || error instanceof KeyPolicyRefused)
      sayFailure(terminal, title, error.message);
    else {
      sayFailure(terminal, title, `a bug: ${error instanceof Error ? error.name : typeof error}`);
      return EXIT.bug;
    }
    return EXIT.failed;
  }
}
