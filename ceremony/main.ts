// `strongroom ceremony …`: planning a custody ceremony, recording it and holding its root token, offline. It touches
// files it is told to, runs age where an identity needs it, and reaches neither network nor cloud. Exit codes: 0 done,
// 1 usage or local error, 70 a bug (specification/operating.md#exit-codes).

import { EXIT } from '../command-line/exit-codes.ts';
import { sayFailure, sayNoCommand, sayWrongUsage } from '../command-line/failure.ts';
import { checkIdentity } from './commands/check-identity.ts';
import { type Command, CommandError, type LoadedCommand, type Terminal, WrongUsage } from './commands/command.ts';
import { keygen } from './commands/keygen.ts';
import { openRootTokenCommand } from './commands/open-root-token.ts';
import { plan } from './commands/plan.ts';
import { recordEnd } from './commands/record/end.ts';
import { recordFile } from './commands/record/file.ts';
import { recordPcrs } from './commands/record/pcrs.ts';
import { recordPerson } from './commands/record/person.ts';
import { recordStart } from './commands/record/start.ts';
import { recordStatement } from './commands/record/statement.ts';
import { transcriptPageCommand, transcriptVerify } from './commands/transcript.ts';

/** The words that lead to a command name it here. */
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

/**
 * @param more commands that reach beyond this folder, which the command tree adds
 * @returns the exit code
 */
export async function main(
  argv: readonly string[],
  terminal: Terminal = process,
  more: ReadonlyMap<string, LoadedCommand> = new Map(),
): Promise<number> {
  const commands = new Map<string, Command | LoadedCommand>([...COMMANDS, ...more]);
  const [first = '', second = ''] = argv;
  const words = commands.has(`${first} ${second}`) ? 2 : 1;
  const name = argv.slice(0, words).join(' ');
  const found = commands.get(name);
  if (found !== undefined) {
    const command = 'load' in found ? await found.load() : found;
    return run(`strongroom ceremony ${name}`, command, argv.slice(words), terminal);
  }
  const group = [...commands.keys()].filter((known) => known.startsWith(`${first} `));
  const isGroup = group.length > 0;
  const known = isGroup ? group : [...new Set([...commands.keys()].map((command) => command.replace(/ .*/, '')))];
  sayNoCommand(terminal, 'strongroom ceremony', argv.slice(0, isGroup ? 2 : 1).join(' '), known);
  return EXIT.failed;
}

async function run(title: string, command: Command, argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await command.run(argv, terminal);
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommandError) {
      const say = error instanceof WrongUsage ? sayWrongUsage : sayFailure;
      say(terminal, title, error.message);
      return EXIT.failed;
    }
    // The name alone: a message could quote an input.
    sayFailure(terminal, title, `a bug: ${error instanceof Error ? error.name : typeof error}`);
    return EXIT.bug;
  }
}
