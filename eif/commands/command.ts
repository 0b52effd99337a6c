// What every command of `strongroom eif` is given and gives back. Data goes to stdout, everything else to stderr.

import { ArgumentsError, type FlagForms, quoted, readArguments as read } from '../../command-line/arguments.ts';
import type { Printed } from '../../command-line/terminal.ts';
import { BuildError } from '../inputs.ts';

export interface Command {
  readonly help: string;
  /** Exit code when the command line or a file cannot be used. Default: 1. */
  readonly troubleExitCode?: number;
  /** @returns the exit code @throws BuildError, ImageFormatError */
  run(argv: readonly string[], terminal: Printed): Promise<number>;
}

export interface Arguments {
  readonly positionals: readonly string[];
  /** The flag's one value; undefined when it was not given. */
  readonly value: (name: string) => string | undefined;
  readonly values: (name: string) => readonly string[];
  readonly has: (name: string) => boolean;
}

export interface Allowed {
  /** `--flag VALUE`, once. */
  readonly single?: readonly string[];
  /** `--flag VALUE`, any number of times. */
  readonly repeated?: readonly string[];
  /** `--flag` */
  readonly switches?: readonly string[];
  readonly positionals: number;
}

/** @throws BuildError for an unknown flag, one that is repeated or has no value, a word too many or too few */
export function readArguments(argv: readonly string[], allowed: Allowed): Arguments {
  const { single = [], repeated = [], switches = [] } = allowed;
  const forms: FlagForms = Object.fromEntries([
    ...single.map((name) => [name, { placeholder: name.toUpperCase() }] as const),
    ...repeated.map((name) => [name, { placeholder: name.toUpperCase(), repeatable: true }] as const),
    ...switches.map((name) => [name, {}] as const),
  ]);
  const { values: given, words } = attempt(() => read(forms, argv));
  if (words.length > allowed.positionals)
    throw new BuildError(`unexpected ${quoted(words[allowed.positionals] ?? '')}`);
  if (words.length < allowed.positionals)
    throw new BuildError(allowed.positionals === 1 ? 'name the image' : `name ${allowed.positionals} images`);
  return {
    positionals: words,
    value: (name) => given[name] as string | undefined,
    values: (name) => (given[name] as readonly string[] | undefined) ?? [],
    has: (name) => given[name] === true,
  };
}

/** @throws BuildError for anything but the two */
export function outputOf({ value }: Arguments): 'table' | 'json' {
  const output = value('output') ?? 'table';
  if (output !== 'table' && output !== 'json') throw new BuildError('--output is table or json');
  return output;
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Two columns. */
export function rows(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...pairs.map(([name]) => name.length));
  return pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}

function attempt<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    throw new BuildError(error.message, error.advice === undefined ? [] : [error.advice]);
  }
}
