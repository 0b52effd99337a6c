// `strongroom eif …`: enclave images, on the host that builds or examines them. No network, no cloud. Exit codes: 0
// done, 1 a usage or local error or a check that failed, 70 a bug (specification/operating.md#exit-codes); `compare`
// has its own.

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

const HELP = `strongroom eif: images for AWS Nitro Enclaves

Usage: strongroom eif COMMAND [ARGUMENTS]

Commands:
${[...COMMANDS].map(([name, { help }]) => `  ${name.padEnd(10)} ${help.split('\n', 1)[0]}`).join('\n')}

Examples:
  strongroom eif build --image image.yaml --ceremony ceremony.yaml --config strongroom.yaml
  strongroom eif compare mine/image.eif theirs/image.eif

\`strongroom eif COMMAND --help\` for a command
`;

const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h']);

/** @returns the exit code */
export async function main(argv: readonly string[], terminal: Printed = process): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === 'help' || HELP_FLAGS.has(name)) {
    (name === undefined ? terminal.stderr : terminal.stdout).write(HELP);
    return name === undefined ? EXIT.failed : EXIT.ok;
  }
  const command = COMMANDS.get(name);
  if (command === undefined) {
    terminal.stderr.write(`strongroom eif: unknown command ${name}\n\n${HELP}`);
    return EXIT.failed;
  }
  if (rest.some((word) => HELP_FLAGS.has(word))) {
    terminal.stdout.write(command.help);
    return EXIT.ok;
  }
  return run(name, command, rest, terminal);
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
