// A program of commands: the tree of words that lead to them, and the one way to run one. A command's file is loaded
// when the words lead to it. An unknown fault is told by its name alone: a message could quote an input.

import { ArgumentsError } from './arguments.ts';
import type { Description, Flags } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { noCommand, sayFailure, seeHelp } from './failure.ts';
import { type CommandWords, readCommand } from './read-command.ts';
import type { Printed } from './terminal.ts';

export interface Command<Call> {
  readonly description: Description;
  readonly troubleExitCode?: ExitCode;
  run(argv: readonly string[], call: Call): Promise<ExitCode>;
}

export type Branch<Call> = Group<Call> | (() => Promise<Command<Call>>);

export interface Group<Call> extends Pick<Description, 'summary' | 'notes' | 'sections' | 'examples'> {
  readonly commands: Readonly<Record<string, Branch<Call>>>;
}

type FoundBranch<Call> = {
  readonly path: readonly string[];
  readonly rest: readonly string[];
} & ({ readonly load: () => Promise<Command<Call>> } | { readonly load: undefined; readonly known: readonly string[] });

export interface Failure {
  readonly problem: string;
  readonly remedies?: readonly string[];
  /** The words of the command line are wrong: the command's help says which are right. */
  readonly isUsage?: boolean;
  readonly exitCode?: ExitCode;
  readonly saidBy?: string;
}

export class NoCommand extends Error {
  readonly group: string;
  readonly written: string | undefined;
  readonly known: readonly string[];

  constructor(group: string, written: string | undefined, known: readonly string[]) {
    super(noCommand(written ?? '', known));
    this.name = 'NoCommand';
    this.group = group;
    this.written = written;
    this.known = known;
  }
}

export type WordsOf<D extends Description> = CommandWords<
  D extends { readonly flags: infer F extends Flags } ? F : Readonly<Record<never, never>>
>;

export function command<const D extends Description, Call extends Printed>(
  description: D,
  run: (words: WordsOf<D>, call: Call) => Promise<ExitCode> | Promise<void>,
  troubleExitCode: ExitCode = EXIT.failed,
): Command<Call> {
  return {
    description,
    troubleExitCode,
    run: async (argv, call) => {
      const words = readCommand(description, argv) as unknown as WordsOf<D>;
      return (await run(words, call)) ?? EXIT.ok;
    },
  };
}

function findCommand<Call>(tree: Branch<Call>, argv: readonly string[]): FoundBranch<Call> {
  return follow(tree, argv, 0);
}

function follow<Call>(branch: Branch<Call>, argv: readonly string[], depth: number): FoundBranch<Call> {
  const [path, rest] = [argv.slice(0, depth), argv.slice(depth)];
  if (typeof branch === 'function') return { path, rest, load: branch };
  const { commands } = branch;
  const [word = ''] = rest;
  const next = Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (next === undefined) return { path, rest, load: undefined, known: Object.keys(commands) };
  return follow(next, argv, depth + 1);
}

export async function describeGroup<Call>({ commands, ...said }: Group<Call>): Promise<Description> {
  const below = Object.entries(commands).map(async ([word, branch]) => {
    const description = typeof branch === 'function' ? (await branch()).description : await describeGroup(branch);
    return [word, description] as const;
  });
  return { ...said, commands: Object.fromEntries(await Promise.all(below)) };
}

/** @param explain what a fault is; its exit code when it is told already; undefined for wrong usage and for a bug */
export async function runProgram<Call extends Printed>(
  { title, tree }: { readonly title: string; readonly tree: Branch<Call> },
  argv: readonly string[],
  call: Call,
  explain: (error: unknown, call: Call) => Failure | ExitCode | undefined,
): Promise<ExitCode> {
  const found = findCommand(tree, argv);
  const name = [title, ...found.path].join(' ');
  let troubleExitCode: ExitCode = EXIT.failed;
  try {
    if (found.load === undefined) throw new NoCommand(name, found.rest[0], found.known);
    const loaded = await found.load();
    troubleExitCode = loaded.troubleExitCode ?? EXIT.failed;
    return await loaded.run(found.rest, call);
  } catch (error) {
    const failure = explain(error, call) ?? usualFailure(error);
    if (typeof failure === 'number') return failure;
    const { problem, remedies = [], isUsage = false, exitCode = troubleExitCode, saidBy = name } = failure;
    sayFailure(call, saidBy, problem, isUsage ? [...remedies, seeHelp(name)] : remedies);
    return exitCode;
  }
}

function usualFailure(error: unknown): Failure {
  if (error instanceof NoCommand) return { problem: error.message, isUsage: true };
  if (error instanceof ArgumentsError) {
    const { message, advice } = error;
    return { problem: message, remedies: advice === undefined ? [] : [advice], isUsage: true };
  }
  const name = error instanceof Error ? error.name : typeof error;
  return { problem: `this is a bug, please report it: ${name}`, exitCode: EXIT.bug };
}
