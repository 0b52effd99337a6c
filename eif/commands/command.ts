// What every command of `strongroom eif` is given and gives back. Data goes to stdout, everything else to stderr.

import { parseArgs } from 'node:util';
import { BuildError } from '../inputs.ts';

export interface Terminal {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

export interface Command {
  readonly help: string;
  /** Exit code when the command line or a file cannot be used. Default: 1. */
  readonly troubleExitCode?: number;
  /** @returns the exit code @throws BuildError, ImageFormatError */
  run(argv: readonly string[], terminal: Terminal): Promise<number>;
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
  const options = Object.fromEntries([
    ...[...single, ...repeated].map((name) => [name, { type: 'string' as const, multiple: true }] as const),
    ...switches.map((name) => [name, { type: 'boolean' as const }] as const),
  ]);
  const parsed = attempt(() => parseArgs({ args: [...argv], options, allowPositionals: true, strict: true }));
  const given = new Map(Object.entries(parsed.values));
  const values = (name: string): readonly string[] => (given.get(name) as string[] | undefined) ?? [];
  for (const name of [...single, ...repeated]) {
    if (values(name).includes('')) throw new BuildError(`--${name} needs a value`);
    if (single.includes(name) && values(name).length > 1) throw new BuildError(`--${name} is given more than once`);
  }
  const { positionals } = parsed;
  if (positionals.length > allowed.positionals) throw new BuildError(`unexpected ${positionals[allowed.positionals]}`);
  if (positionals.length < allowed.positionals)
    throw new BuildError(allowed.positionals === 1 ? 'name the image' : `name ${allowed.positionals} images`);
  return { positionals, values, value: (name) => values(name)[0], has: (name) => given.get(name) === true };
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
    throw new BuildError(error instanceof Error ? error.message : String(error));
  }
}
