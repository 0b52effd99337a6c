// `strongroom ceremony …`: planning a custody ceremony and holding its root token, offline. It touches files it is told
// to, runs age where an identity needs it, and reaches neither network nor cloud. Exit codes: 0 done, 1 usage or local
// error, 70 a bug (specification/operating.md#exit-codes).

import { EXIT } from '../command-line/exit-codes.ts';
import { checkIdentity } from './commands/check-identity.ts';
import { type Command, CommandError, type LoadedCommand, type Terminal } from './commands/command.ts';
import { keygen } from './commands/keygen.ts';
import { openRootTokenCommand } from './commands/open-root-token.ts';
import { plan } from './commands/plan.ts';

const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ['plan', plan],
  ['keygen', keygen],
  ['check-identity', checkIdentity],
  ['open-root-token', openRootTokenCommand],
]);

type Commands = ReadonlyMap<string, Command | LoadedCommand>;

const summaryOf = (command: Command | LoadedCommand): string =>
  'summary' in command ? command.summary : (command.help.split('\n', 1)[0] ?? '');

const help = (commands: Commands): string => `strongroom ceremony: the custody of the master key

Usage: strongroom ceremony COMMAND [ARGUMENTS]

Commands:
${[...commands].map(([name, command]) => `  ${name.padEnd(16)} ${summaryOf(command)}`).join('\n')}

Examples:
  strongroom ceremony plan ceremony.yaml
  strongroom ceremony keygen --identity alice.age
  strongroom ceremony check-identity ceremony.yaml --identity alice.age

\`strongroom ceremony COMMAND --help\` for a command
`;

/**
 * @param more commands that reach beyond this folder, which the command tree adds
 * @returns the exit code
 */
export async function main(
  argv: readonly string[],
  terminal: Terminal = process,
  more: ReadonlyMap<string, LoadedCommand> = new Map(),
): Promise<number> {
  const commands: Commands = new Map<string, Command | LoadedCommand>([...COMMANDS, ...more]);
  const [name, ...rest] = argv;
  if (name === undefined || name === 'help' || HELP_FLAGS.has(name)) {
    (name === undefined ? terminal.stderr : terminal.stdout).write(help(commands));
    return name === undefined ? EXIT.failed : EXIT.ok;
  }
  const found = commands.get(name);
  if (found === undefined) {
    terminal.stderr.write(`strongroom ceremony: unknown command ${name}\n\n${help(commands)}`);
    return EXIT.failed;
  }
  const command = 'load' in found ? await found.load() : found;
  if (rest.some((word) => HELP_FLAGS.has(word))) {
    terminal.stdout.write(command.help);
    return EXIT.ok;
  }
  return run(`strongroom ceremony ${name}`, command, rest, terminal);
}

const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h']);

async function run(title: string, command: Command, argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await command.run(argv, terminal);
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommandError) {
      terminal.stderr.write(`${title}: ${error.message}\n`);
      return EXIT.failed;
    }
    // The name alone: a message could quote an input.
    terminal.stderr.write(`${title}: a bug: ${error instanceof Error ? error.name : typeof error}\n`);
    return EXIT.bug;
  }
}
