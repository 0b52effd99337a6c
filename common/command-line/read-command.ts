// The flags and words of one command, as its description has them.

import { ArgumentsError, readArguments } from './arguments.ts';
import type { Argument, Description, Flags, Values } from './command.ts';
import { quoted } from './printable.ts';

export interface CommandWords<F extends Flags> {
  readonly values: Values<F>;
  readonly words: readonly string[];
  readonly argument: string;
}

export function readCommand<const F extends Flags>(
  { flags, argument }: Pick<Description, 'argument'> & { readonly flags?: F },
  argv: readonly string[],
): CommandWords<F> {
  const { values, words } = readArguments(flags ?? {}, argv);
  checkWords(argument, words);
  return { values: values as Values<F>, words, argument: words[0] ?? '' };
}

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
