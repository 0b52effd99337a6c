// The flags and words of one command, as its description has them.

import { ArgumentsError, quoted, readArguments } from './arguments.ts';
import type { Argument, Description, Flags, Values } from './command.ts';
import { note, type Printed } from './terminal.ts';

export interface CommandWords<F extends Flags> {
  readonly values: Values<F>;
  /** The words that are no flags. */
  readonly words: readonly string[];
  /** The first of them; empty when there is none. */
  readonly argument: string;
  /** What to tell whoever wrote flags by their former names. */
  readonly warnings: readonly string[];
}

/** @throws ArgumentsError */
export function readCommand<const F extends Flags>(
  { flags, argument }: Pick<Description, 'argument'> & { readonly flags?: F },
  argv: readonly string[],
): CommandWords<F> {
  const { values, words, warnings } = readArguments(flags ?? {}, argv);
  checkWords(argument, words);
  return { values: values as Values<F>, words, argument: words[0] ?? '', warnings };
}

/** Reads the words of one command, and tells the reader of its warnings. */
export type ArgumentsReader = <const F extends Flags>(
  argv: readonly string[],
  description: Pick<Description, 'argument'> & { readonly flags?: F },
  terminal: Printed,
) => CommandWords<F>;

/**
 * @param trouble what a program throws for a flag that is unknown, repeated or without a value, and for a wrong word
 */
export function argumentsReader(trouble: (error: ArgumentsError) => Error): ArgumentsReader {
  return (argv, description, terminal) => {
    try {
      const read = readCommand(description, argv);
      for (const warning of read.warnings) note(terminal, `warning: ${warning}`);
      return read;
    } catch (error) {
      throw error instanceof ArgumentsError ? trouble(error) : error;
    }
  };
}

/** How an argument is written in a line of usage. */
export function argumentUsage({ name, count = 1 }: Argument): string {
  if (count === 'optional') return `[${name}]`;
  return count === 'many' ? `${name}…` : Array.from({ length: count }, () => name).join(' ');
}

function checkWords(argument: Argument | undefined, words: readonly string[]): void {
  if (argument === undefined) {
    // Not repeated: it may be a token whose flag was forgotten.
    if (words.length > 0)
      throw new ArgumentsError('this command takes flags only, and an argument without a flag is there');
    return;
  }
  const { name, meaning, choices, count = 1 } = argument;
  const [least, most] =
    count === 'optional' ? [0, 1] : count === 'many' ? [1, Number.POSITIVE_INFINITY] : [count, count];
  if (words.length < least || words.includes(''))
    throw new ArgumentsError(`${argumentUsage(argument)} is needed: ${meaning}`);
  if (words.length > most) throw new ArgumentsError(`this command takes ${most === 1 ? 'one' : most} ${name}`);
  const wrong = choices === undefined ? undefined : words.find((word) => !choices.includes(word));
  if (wrong !== undefined) throw new ArgumentsError(`${name} is one of ${choices?.join(', ')}, not ${quoted(wrong)}`);
}
