// What every command of `strongroom ceremony` is given and gives back. Data goes to stdout, everything else to stderr;
// a failure is one sentence. Exit codes: 0 done, 1 a usage or local error (specification/operating.md#exit-codes).

import { parseArgs } from 'node:util';

export interface Terminal {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
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
}

/**
 * `--flag VALUE` for each of the names, and at most `positionals` words beside them.
 * @throws CommandError for an unknown flag, a repeated one, one without a value, a word too many
 */
export function readArguments(argv: readonly string[], names: readonly string[], positionals: number): Arguments {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const, multiple: true }]));
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new CommandError(error instanceof Error ? error.message : String(error));
  }
  if (parsed.positionals.length > positionals) throw new CommandError(`unexpected ${parsed.positionals.at(-1)}`);
  const flags: Record<string, string> = {};
  for (const [name, given] of Object.entries(parsed.values)) {
    const [value, ...more] = given as string[];
    if (value === undefined || value === '') throw new CommandError(`--${name} needs a value`);
    if (more.length > 0) throw new CommandError(`--${name} is given more than once`);
    flags[name] = value;
  }
  return { positionals: parsed.positionals, flags };
}

/** What a file operation's error says, without a stack: `ENOENT: no such file or directory, open 'x'`. */
export function fileProblem(error: unknown): CommandError {
  if (error instanceof Error && 'syscall' in error) return new CommandError(error.message);
  throw error;
}
