// `strongroom ceremony …`: planning a custody ceremony, recording it and holding its root token, offline. It touches
// files it is told to, runs age where an identity needs it, and reaches neither network nor cloud. Exit codes: 0 done,
// 1 usage or local error, 70 a bug (specification/operating.md#exit-codes).

import { asksForHelp, quoted } from '../command-line/arguments.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import { checkIdentity } from './commands/check-identity.ts';
import { type Command, CommandError, type LoadedCommand, type Terminal } from './commands/command.ts';
import { keygen } from './commands/keygen.ts';
import { openRootTokenCommand } from './commands/open-root-token.ts';
import { plan } from './commands/plan.ts';
import { recordEnd, recordFile, recordPcrs, recordPerson, recordStart, recordStatement } from './commands/record.ts';
import { transcriptPageCommand, transcriptVerify } from './commands/transcript.ts';

/** By the words that lead to them. */
const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ['plan', plan],
  ['keygen', keygen],
  ['check-identity', checkIdentity],
  ['open-root-token', openRootTokenCommand],
  ['record start', recordStart],
  ['record person', recordPerson],
  ['record statement', recordStatement],
  ['record file', recordFile],
  ['record pcrs', recordPcrs],
  ['record end', recordEnd],
  ['transcript verify', transcriptVerify],
  ['transcript page', transcriptPageCommand],
]);

type Commands = ReadonlyMap<string, Command | LoadedCommand>;

const summaryOf = (command: Command | LoadedCommand): string =>
  'summary' in command ? command.summary : (command.help.split('\n', 1)[0] ?? '');

const help = (commands: Commands): string => `strongroom ceremony: the custody of the master key

Usage: strongroom ceremony COMMAND [ARGUMENTS]

Commands:
${[...commands].map(([name, command]) => `  ${name.padEnd(17)}  ${summaryOf(command)}`).join('\n')}

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
  const [first] = argv;
  const { name, below, rest } = follow(commands, argv);
  const found = commands.get(name);
  if (found !== undefined) {
    const command = 'load' in found ? await found.load() : found;
    if (!asksForHelp(rest)) return run(`strongroom ceremony ${name}`, command, rest, terminal);
    terminal.stdout.write(command.help);
    return EXIT.ok;
  }
  if (first === 'help' || asksForHelp(argv)) {
    terminal.stdout.write(help(below));
    return EXIT.ok;
  }
  const problem =
    first === undefined ? '' : `strongroom ceremony: unknown command ${quoted(argv.slice(0, 2).join(' '))}\n\n`;
  terminal.stderr.write(`${problem}${help(below)}`);
  return EXIT.failed;
}

/** The longest command that the words begin with, or the commands that could follow them: of a group, or all. */
function follow(
  commands: Commands,
  argv: readonly string[],
): { readonly name: string; readonly below: Commands; readonly rest: readonly string[] } {
  const [first = '', second = ''] = argv;
  const words = commands.has(`${first} ${second}`) ? 2 : 1;
  const group = new Map([...commands].filter(([name]) => name.startsWith(`${first} `)));
  return {
    name: argv.slice(0, words).join(' '),
    below: group.size === 0 ? commands : group,
    rest: argv.slice(words),
  };
}

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
