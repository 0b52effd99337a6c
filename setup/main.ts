// `strongroom setup …`: what a deployment needs before its first start. `tables` makes the DynamoDB tables; `iam` and
// `kms-policy` print policies and call nothing. Exit codes: 0 done, 1 usage or a policy that is refused, 70 a bug, 78 a
// configuration that cannot be used (specification/operating.md#exit-codes).

import { ArgumentsError, withAdvice } from '../command-line/arguments.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import type { Piped } from '../command-line/terminal.ts';
import { suggest, writeViolations } from '../command-line/violations.ts';
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
    return runSetupCommand(argv, terminal);
  }
  const command = COMMANDS.get(name);
  if (command === undefined) {
    const advice = suggest(name, [...COMMANDS.keys(), 'tables'], 'see strongroom setup --help');
    terminal.stderr.write(`strongroom setup: there is no command ${name}; ${advice}\n`);
    return EXIT.failed;
  }
  return run(`strongroom setup ${name}`, () => command.run(rest, terminal), terminal);
}

function run(title: string, perform: () => void, terminal: Pick<Piped, 'stderr' | 'env'>): number {
  const { stderr } = terminal;
  try {
    perform();
    return EXIT.ok;
  } catch (error) {
    if (error instanceof ConfigurationViolated) {
      writeViolations(error.violations, terminal);
      return EXIT.configuration;
    }
    if (error instanceof ArgumentsError) stderr.write(`${title}: ${withAdvice(error)}\nSee ${title} --help\n`);
    else if (error instanceof InputRefused || error instanceof KeyPolicyRefused)
      stderr.write(`${title}: ${error.message}\n`);
    else {
      stderr.write(`${title}: a bug: ${error instanceof Error ? error.name : typeof error}\n`);
      return EXIT.bug;
    }
    return EXIT.failed;
  }
}
