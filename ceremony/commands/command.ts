// What every command of `strongroom ceremony` is given and gives back. Data goes to stdout, everything else to stderr;
// a failure is one sentence. Exit codes: 0 done, 1 a usage or local error (specification/operating.md#exit-codes).

import { ArgumentsError, quoted, readArguments as read, withAdvice } from '../../command-line/arguments.ts';
import type { Printed } from '../../command-line/terminal.ts';

export interface Terminal extends Printed {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Command {
  readonly help: string;
  run(argv: readonly string[], terminal: Terminal): Promise<void>;
}

/** A command that reaches beyond this folder: it is loaded when somebody asks for it by name. */
export interface LoadedCommand {
  /** One line, for the list of commands. */
  readonly summary: string;
  load(): Promise<Command>;
}

/** The command line, a file or an input cannot be used: told to the user, exit 1. */
export class CommandError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CommandError';
  }
}

export interface Arguments {
  readonly positionals: readonly string[];
  readonly flags: Readonly<Record<string, string>>;
  /** Those that are given. */
  readonly switches: ReadonlySet<string>;
  /** What a flag was given that may be given several times. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
}

/** The names of what may be given beside `--flag VALUE`. */
export interface OtherFlags {
  readonly switches?: readonly string[];
  readonly lists?: readonly string[];
}

/**
 * `--flag VALUE` for each of the names, the other flags, and at most `positionals` words beside them.
 * @throws CommandError for an unknown flag, a repeated one, one without a value, a word too many
 */
export function readArguments(
  argv: readonly string[],
  names: readonly string[],
  positionals: number,
  { switches = [], lists = [] }: OtherFlags = {},
): Arguments {
  const forms = Object.fromEntries([
    ...names.map((name) => [name, { placeholder: name.toUpperCase() }] as const),
    ...lists.map((name) => [name, { placeholder: name.toUpperCase(), repeatable: true }] as const),
    ...switches.map((name) => [name, {}] as const),
  ]);
  try {
    const { values, words } = read(forms, argv);
    if (words.length > positionals) throw new ArgumentsError(`unexpected ${quoted(words.at(-1) ?? '')}`);
    const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    return {
      positionals: words,
      flags: Object.fromEntries(texts),
      switches: new Set(switches.filter((name) => values[name] === true)),
      lists: Object.fromEntries(lists.map((name) => [name, (values[name] ?? []) as readonly string[]])),
    };
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    throw new CommandError(withAdvice(error));
  }
}

/** What a file operation's error says, without a stack: `ENOENT: no such file or directory, open 'x'`. */
export function fileProblem(error: unknown): CommandError {
  if (error instanceof Error && 'syscall' in error) return new CommandError(error.message);
  throw error;
}
