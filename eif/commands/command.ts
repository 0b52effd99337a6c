// What every command of `strongroom eif` is given and gives back. Data goes to stdout, everything else to stderr.

import { ArgumentsError } from '../../command-line/arguments.ts';
import type { Description, Flags } from '../../command-line/command.ts';
import { type CommandWords, readCommand } from '../../command-line/read-command.ts';
import { note, type Printed } from '../../command-line/terminal.ts';
import { BuildError } from '../inputs.ts';

export interface Command {
  readonly description: Description;
  /** Exit code when the command line or a file cannot be used. Default: 1. */
  readonly troubleExitCode?: number;
  /** @returns the exit code @throws BuildError, ImageFormatError */
  run(argv: readonly string[], terminal: Printed): Promise<number>;
}

/** @throws BuildError for an unknown flag, one that is repeated or has no value, a word too many or too few */
export function readArguments<const F extends Flags>(
  argv: readonly string[],
  description: Pick<Description, 'argument'> & { readonly flags?: F },
  terminal: Printed,
): CommandWords<F> {
  try {
    const read = readCommand(description, argv);
    for (const warning of read.warnings) note(terminal, `warning: ${warning}`);
    return read;
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    throw new BuildError(error.message, error.advice === undefined ? [] : [error.advice]);
  }
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Two columns. */
export function rows(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...pairs.map(([name]) => name.length));
  return pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}
