// argv → command → exit code: the only file of the CLI that reads the process's arguments. Data goes to stdout,
// everything else to stderr. Every failure becomes one line, advice where there is some, and an exit code (exit.ts).

import { ArgumentsError } from '../command-line/arguments.ts';
import type { Flags } from '../command-line/command.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import { sayFailure } from '../command-line/failure.ts';
import { type CommandWords, readCommand } from '../command-line/read-command.ts';
import { note, type Terminal } from '../command-line/terminal.ts';
import { bounded } from '../command-line/text.ts';
import { AWS_NITRO, type DocumentProvider } from './attestation/provider.ts';
import { createClient } from './client.ts';
import type { Command } from './command.ts';
import { confirm } from './confirm.ts';
import { CommandFailure, type OperatorExitCode, UsageFailure } from './exit.ts';
import { createOutput } from './output.ts';
import type { OpenLatchTable } from './recovery/latch-table.ts';
import { resolveSettings } from './settings.ts';
import { readToken } from './token.ts';
import { findCommand, followWords } from './tree.ts';
import { flagsOf, PROGRAM } from './walk.ts';

const MAX_BUG_CHARACTERS = 500;

/** What a command can do beside asking the signer; the program that has it hands it in. */
export interface OperatorParts {
  readonly openLatchTable?: OpenLatchTable;
}

/** @param argv the arguments after `operator` */
export async function main(argv: readonly string[], parts: OperatorParts = {}): Promise<void> {
  const { env, stdin, stdout, stderr } = process;
  stdout.on('error', () => process.exit(EXIT.failed)); // whoever reads the data has gone
  process.exitCode = await runOperator(argv, { env, stdin, stdout, stderr }, AWS_NITRO, parts);
}

/** @param provider whose attestation documents are believed: tests have another than AWS, the program has not */
export async function runOperator(
  argv: readonly string[],
  terminal: Terminal,
  provider: DocumentProvider,
  parts: OperatorParts = {},
): Promise<OperatorExitCode> {
  try {
    const { node, rest } = findCommand(argv);
    await runCommand(node, rest, { terminal, provider, ...parts });
    return EXIT.ok;
  } catch (error) {
    return report(error, argv, terminal);
  }
}

async function runCommand(
  command: Command,
  argv: readonly string[],
  {
    terminal,
    provider,
    openLatchTable,
  }: OperatorParts & { readonly terminal: Terminal; readonly provider: DocumentProvider },
): Promise<void> {
  const { values, argument } = readArguments(command, argv, terminal);
  if (command.kind === 'local') return command.run({ values, argument, terminal, provider });
  const settings = resolveSettings(values, terminal.env, provider, command.timeoutSeconds);
  const { peer, token: source, timeoutSeconds, output } = settings;
  for (const warning of settings.warnings) note(terminal, `warning: ${warning}`);
  if (source?.text === '-' && argument === '-') throw new UsageFailure('stdin cannot be both the token and the file');
  const token = source === undefined ? undefined : await readToken(source, terminal);
  const connection = { peer, token, timeoutSeconds };
  await command.run({
    values,
    argument,
    client: createClient(connection),
    connection,
    output: createOutput(output, terminal),
    terminal,
    openLatchTable,
    confirm: async (consequence, word, flag = '--yes') => {
      if (values['yes'] !== true) await confirm(terminal, { at: peer.url.origin, consequence, word, flag });
    },
  });
}

function readArguments(command: Command, argv: readonly string[], terminal: Terminal): CommandWords<Flags> {
  const { argument } = command;
  try {
    const read = readCommand({ flags: flagsOf(command), ...(argument === undefined ? {} : { argument }) }, argv);
    for (const warning of read.warnings) note(terminal, `warning: ${warning}`);
    return read;
  } catch (error) {
    throw error instanceof ArgumentsError ? new UsageFailure(error.message, error.advice) : error;
  }
}

function report(error: unknown, argv: readonly string[], terminal: Terminal): OperatorExitCode {
  if (error instanceof CommandFailure) {
    const { message, advice, exitCode } = error;
    const help = error instanceof UsageFailure ? [`see ${[PROGRAM, ...followWords(argv).path].join(' ')} --help`] : [];
    sayFailure(terminal, 'strongroom', message, [...(advice === undefined ? [] : [advice]), ...help]);
    return exitCode;
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  sayFailure(terminal, 'strongroom', `this is a bug, please report it: ${bounded(message, MAX_BUG_CHARACTERS)}`);
  return EXIT.bug;
}
