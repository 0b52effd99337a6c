// `strongroom eif …`: enclave images, on the host that builds or examines them. No network, no cloud. Exit codes: 0
// done, 1 a usage or local error or a check that failed, 70 a bug (specification/operating.md#exit-codes); `compare`
// has its own.

import { EXIT } from '../command-line/exit-codes.ts';
import { sayFailure, sayNoCommand, sayWrongUsage } from '../command-line/failure.ts';
import type { Printed } from '../command-line/terminal.ts';
import { buildCommand } from './commands/build.ts';
import type { Command } from './commands/command.ts';
import { compareCommand } from './commands/compare.ts';
import { describeCommand } from './commands/describe.ts';
import { BuildError, WrongUsage } from './inputs.ts';

const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ['build', buildCommand],
  ['describe', describeCommand],
  ['compare', compareCommand],
]);

/** @returns the exit code */
export async function main(argv: readonly string[], terminal: Printed = process): Promise<number> {
  const [name = '', ...rest] = argv;
  const command = COMMANDS.get(name);
  if (command !== undefined) return run(name, command, rest, terminal);
  sayNoCommand(terminal, 'strongroom eif', name, [...COMMANDS.keys()]);
  return EXIT.failed;
}

async function run(name: string, command: Command, argv: readonly string[], terminal: Printed): Promise<number> {
  try {
    return await command.run(argv, terminal);
  } catch (error) {
    const title = `strongroom eif ${name}`;
    if (error instanceof BuildError) {
      const say = error instanceof WrongUsage ? sayWrongUsage : sayFailure;
      say(terminal, title, error.message, error.details);
      return command.troubleExitCode ?? EXIT.failed;
    }
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    sayFailure(terminal, title, `this is a bug, please report it: ${text}`);
    return EXIT.bug;
  }
}
