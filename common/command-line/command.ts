// What a program or a command says of itself, as data: its flags are read, its help is printed, its completion and its
// reference are made from the same description, so that none of them can fall behind the others.

import type { FlagForm, FlagValue } from './arguments.ts';

export interface Flag extends FlagForm {
  readonly meaning: string;
  readonly heading?: string;
  readonly isBoolean?: true;
  readonly isProfile?: true;
}

export type Flags = Readonly<Record<string, Flag>>;

export interface Argument {
  readonly name: string;
  readonly meaning: string;
  readonly choices?: readonly string[];
  readonly count?: number | 'optional' | 'many';
}

export interface HelpSection {
  readonly heading: string;
  readonly entries: readonly (readonly [term: string, text: string])[];
}

export interface Description {
  readonly summary: string;
  /** What follows the words that lead here; made from the argument and the flags when not given. */
  readonly usage?: readonly string[];
  /** Paragraphs, which are wrapped; one that begins with a blank stays as it is. */
  readonly notes?: readonly string[];
  readonly argument?: Argument;
  readonly flags?: Flags;
  readonly commands?: Readonly<Record<string, Description>>;
  readonly sections?: readonly HelpSection[];
  readonly examples?: readonly string[];
}

export type Values<F extends Flags> = { readonly [Name in keyof F]: ValueOf<F[Name]> };

type ValueOf<F extends Flag> = F extends { readonly placeholder: string }
  ? F extends { readonly repeatable: true }
    ? F extends { readonly required: true }
      ? readonly string[]
      : readonly string[] | undefined
    : F extends { readonly required: true }
      ? string
      : string | undefined
  : 'placeholder' extends keyof F
    ? FlagValue
    : boolean;

const HELP: Flag = { short: 'h', meaning: 'Show this text' };

export function toldFlags({ flags = {} }: Description): Flags {
  return { ...flags, help: flags['help'] ?? HELP };
}

interface FoundCommand {
  readonly path: readonly string[];
  readonly description: Description;
  readonly rest: readonly string[];
}

export function followWords(top: Description, argv: readonly string[]): FoundCommand {
  let description = top;
  const path: string[] = [];
  for (const word of argv) {
    const { commands = {} } = description;
    const next = Object.hasOwn(commands, word) ? commands[word] : undefined;
    if (next === undefined) break;
    description = next;
    path.push(word);
  }
  return { path, description, rest: argv.slice(path.length) };
}

export function* walkDescriptions(
  description: Description,
  path: readonly string[] = [],
): Generator<{ readonly path: readonly string[]; readonly description: Description }> {
  yield { path, description };
  for (const [word, below] of Object.entries(description.commands ?? {}))
    yield* walkDescriptions(below, [...path, word]);
}
