// The arguments of one operator command: its flags as every program reads them, and its one positional argument.

import { ArgumentsError, type FlagValue, quoted, readArguments } from '../command-line/arguments.ts';
import type { Argument, Command, Flags } from './command.ts';
import { UsageFailure } from './exit.ts';

export interface ParsedArguments {
  readonly values: Readonly<Record<string, FlagValue>>;
  /** Empty when the command takes none. */
  readonly argument: string;
}

/**
 * @param flags those of the command and the common ones
 * @throws CommandFailure: wrong usage
 */
export function parseArguments(command: Command, flags: Flags, argv: readonly string[]): ParsedArguments {
  try {
    const { values, words } = readArguments(flags, argv);
    return { values, argument: checkArgument(command.argument, words) };
  } catch (error) {
    throw error instanceof ArgumentsError ? new UsageFailure(error.message, error.advice) : error;
  }
}

function checkArgument(argument: Argument | undefined, positionals: readonly string[]): string {
  const [given, ...more] = positionals;
  if (argument === undefined) {
    // Not repeated: it may be a token whose flag was forgotten.
    if (given !== undefined)
      throw new ArgumentsError('this command takes flags only, and an argument without a flag is there');
    return '';
  }
  if (given === undefined || given === '') throw new ArgumentsError(`${argument.name} is needed: ${argument.meaning}`);
  if (more.length > 0) throw new ArgumentsError(`this command takes one ${argument.name}`);
  if (argument.choices !== undefined && !argument.choices.includes(given)) {
    throw new ArgumentsError(`${argument.name} is one of ${argument.choices.join(', ')}, not ${quoted(given)}`);
  }
  return given;
}
