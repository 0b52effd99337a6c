// `strongroom eif …`: enclave images, on the host that builds or examines them. No network, no cloud. Exit codes: 0
// done, 1 a usage or local error or a check that failed, 70 a bug (specification/operating.md#exit-codes); `compare`
// has its own.

import { quoted } from '../command-line/arguments.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import type { Printed } from '../command-line/terminal.ts';
import { buildCommand } from './commands/build.ts';
import type { Command } from './commands/command.ts';
import { compareCommand } from './commands/compare.ts';
import { describeCommand } from './commands/describe.ts';
import { BuildError } from './inputs.ts';

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
  const known = [...COMMANDS.keys()].join(', ');
  terminal.stderr.write(`strongroom eif: there is no command ${quoted(name)}; there are: ${known}\n`);
  return EXIT.failed;
}

async function run(name: string, command: Command, argv: readonly string[], terminal: Printed): Promise<number> {
  try {
    return await command.run(argv, terminal);
  } catch (error) {
    const title = `strongroom eif ${name}`;
    if (error instanceof BuildError) {
      terminal.stderr.write([`${title}: ${error.message}`, ...error.details.map((line) => `  ${line}`), ''].join('\n'));
      return command.troubleExitCode ?? EXIT.failed;
    }
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    terminal.stderr.write(`${title}: this is a bug, please report it: ${text}\n`);
    return EXIT.bug;
  }
}
