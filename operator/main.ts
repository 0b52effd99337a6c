// argv → command → exit code: the only file of the CLI that reads the process's arguments. Data goes to stdout,
// everything else to stderr. Every failure becomes one line, advice where there is some, and an exit code (exit.ts).

import { AWS_NITRO, type DocumentProvider } from '../common/attestation/contract.ts';
import { ArgumentsError } from '../common/command-line/arguments.ts';
import { EXIT, type ExitCode } from '../common/command-line/exit-codes.ts';
import { nearest } from '../common/command-line/nearest.ts';
import { quoted } from '../common/command-line/printable.ts';
import { type Failure, NoCommand, runProgram } from '../common/command-line/program.ts';
import type { Terminal } from '../common/command-line/terminal.ts';
import { bounded } from '../common/command-line/text.ts';
import { type OperatorParts, PROGRAM } from './command.ts';
import { CommandFailure, UsageFailure } from './exit.ts';
import { OPERATOR_TREE } from './tree.ts';

const MAX_BUG_CHARACTERS = 500;

export async function main(argv: readonly string[], parts: OperatorParts = {}): Promise<void> {
  const { env, stdin, stdout, stderr } = process;
  process.exitCode = await runOperator(argv, { env, stdin, stdout, stderr }, AWS_NITRO, parts);
}

/** @param provider whose attestation documents are believed: tests have another than AWS, the program has not */
export function runOperator(
  argv: readonly string[],
  { env, stdin, stdout, stderr }: Terminal,
  provider: DocumentProvider,
  parts: OperatorParts = {},
): Promise<ExitCode> {
  const world = { env, stdin, stdout, stderr, provider, ...parts };
  return runProgram({ title: PROGRAM, tree: OPERATOR_TREE }, argv, world, explain);
}

function explain(error: unknown): Failure {
  return { saidBy: 'strongroom', ...failureOf(error) };
}

function failureOf(error: unknown): Failure {
  if (error instanceof NoCommand) return withoutCommand(error);
  if (error instanceof ArgumentsError) return { problem: error.message, remedies: listed(error.advice), isUsage: true };
  if (error instanceof CommandFailure) {
    const { message, advice, exitCode } = error;
    return { problem: message, remedies: listed(advice), isUsage: error instanceof UsageFailure, exitCode };
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const problem = `this is a bug, please report it: ${bounded(message, MAX_BUG_CHARACTERS)}`;
  return { problem, exitCode: EXIT.bug };
}

/** Flags come after the words of a command. */
function withoutCommand({ group, written, known }: NoCommand): Failure {
  const all = `there are: ${known.join(', ')}`;
  if (written === undefined || written.startsWith('-')) {
    const flagsFirst = written === undefined ? '' : ', and its flags come after it';
    return { problem: `say which command of ${group} to run${flagsFirst}`, remedies: [all], isUsage: true };
  }
  const near = nearest(written, known);
  const advice = near === undefined ? all : `did you mean ${near}?`;
  return { problem: `there is no command ${group} ${quoted(written)}`, remedies: [advice], isUsage: true };
}

function listed(advice: string | undefined): readonly string[] {
  return advice === undefined ? [] : [advice];
}
