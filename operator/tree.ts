// The command tree, and finding a command in it by the words of the command line.

import { nearest } from '../command-line/nearest.ts';
import { bounded } from '../command-line/text.ts';
import type { Command, Group } from './command.ts';
import { doctor } from './commands/doctor.ts';
import { keys } from './commands/keys.ts';
import { policies } from './commands/policies.ts';
import { recover } from './commands/recover.ts';
import { seal } from './commands/seal.ts';
import { slashing } from './commands/slashing.ts';
import { status } from './commands/status.ts';
import { tokens } from './commands/tokens.ts';
import { top } from './commands/top.ts';
import { tunnel } from './commands/tunnel.ts';
import { verify } from './commands/verify.ts';
import { UsageFailure } from './exit.ts';
import { PROGRAM } from './walk.ts';

const MAX_QUOTED_CHARACTERS = 60;

export const TREE: Group = {
  kind: 'group',
  summary: 'Look after a running signer',
  commands: {
    status,
    top,
    seal,
    recover,
    auth: { kind: 'group', summary: 'Who may do what', commands: { policy: policies, token: tokens } },
    keys,
    slashing,
    verify,
    doctor,
    tunnel,
  },
};

export interface Found<Of = Group | Command> {
  /** The words that lead to it, after `strongroom operator`. */
  readonly path: readonly string[];
  readonly node: Of;
  /** The arguments after them. */
  readonly rest: readonly string[];
}

/** Follow the leading words as far as they are words of the tree; flags come after them. */
export function followWords(argv: readonly string[]): Found {
  let node: Group | Command = TREE;
  const path: string[] = [];
  for (const word of argv) {
    const next: Group | Command | undefined =
      node.kind === 'group' && Object.hasOwn(node.commands, word) ? node.commands[word] : undefined;
    if (next === undefined) break;
    node = next;
    path.push(word);
  }
  return { path, node, rest: argv.slice(path.length) };
}

/** @throws UsageFailure: no command, a word that is none, or a flag before it */
export function findCommand(argv: readonly string[]): Found<Command> {
  const { path, node, rest } = followWords(argv);
  const [word] = rest;
  if (node.kind !== 'group') return { path, node, rest };
  const known = Object.keys(node.commands);
  const program = [PROGRAM, ...path].join(' ');
  if (word === undefined || word.startsWith('-')) {
    const flagsFirst = word === undefined ? '' : ', and its flags come after it';
    throw new UsageFailure(`say which command of ${program} to run${flagsFirst}`, `there are: ${known.join(', ')}`);
  }
  const near = nearest(word, known);
  throw new UsageFailure(
    `there is no command ${program} ${bounded(word, MAX_QUOTED_CHARACTERS)}`,
    near === undefined ? `there are: ${known.join(', ')}` : `did you mean ${near}?`,
  );
}
