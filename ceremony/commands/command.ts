// What every command of `strongroom ceremony` is given and gives back. Data goes to stdout, everything else to stderr;
// a failure is one sentence. Exit codes: 0 done, 1 a usage or local error (specification/operating.md#exit-codes).

import { withAdvice } from '../../command-line/arguments.ts';
import type { Description } from '../../command-line/command.ts';
import { fileFault } from '../../command-line/file-faults.ts';
import { argumentsReader } from '../../command-line/read-command.ts';
import type { Printed } from '../../command-line/terminal.ts';

export interface Terminal extends Printed {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Command {
  readonly description: Description;
  run(argv: readonly string[], terminal: Terminal): Promise<void>;
}

/** A command that reaches beyond this folder: it is loaded when somebody asks for it by name. */
export interface LoadedCommand {
  load(): Promise<Command>;
}

/** The command line, a file or an input cannot be used: told to the user, exit 1. */
export class CommandError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CommandError';
  }
}

/** The words of the command line are wrong: the command's help says which are right. */
export class WrongUsage extends CommandError {}

/** @throws WrongUsage for what the command line may not say */
export const readArguments = argumentsReader((error) => new WrongUsage(withAdvice(error)));

/**
 * What could not be done, to which file, and what to do about it. @throws the error, when no file operation failed
 * @param file for a fault that does not name it
 */
export function fileProblem(error: unknown, file = 'a file'): CommandError {
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
  const { syscall } = error;
  const verb = syscall === 'open' ? 'opened' : syscall === 'read' ? 'read' : syscall === 'write' ? 'written' : 'used';
  return new CommandError(fileFault('path' in error ? String(error.path) : file, verb, error));
}
