// The command tree, and finding a command in it by the words of the command line.

import type { Command, Group } from './command.ts';
import { completion } from './commands/completion.ts';
import { policies } from './commands/policies.ts';
import { seal } from './commands/seal.ts';
import { slashing } from './commands/slashing.ts';
import { status } from './commands/status.ts';
import { tokens } from './commands/tokens.ts';
import { localFailure } from './exit.ts';
import { nearest } from './suggest.ts';
import { bounded } from './text.ts';
import { PROGRAM } from './walk.ts';

export const TREE: Group = {
  kind: 'group',
  summary: 'Look after a running signer: status, seal, policies, tokens, slashing protection records',
  commands: {
    status,
    seal,
    auth: { kind: 'group', summary: 'Who may do what', commands: { policy: policies, token: tokens } },
    slashing,
    completion,
  },
};

export interface Found {
  /** The words that lead to it, after `strongroom operator`. */
  readonly path: readonly string[];
  readonly node: Group | Command;
  /** The arguments after them. */
  readonly rest: readonly string[];
}

/** Follow the leading words as far as they go; flags come after them. */
export function findCommand(argv: readonly string[]): Found {
  let node: Group | Command = TREE;
  const path: string[] = [];
  for (const word of argv) {
    if (node.kind !== 'group' || word.startsWith('-')) break;
    const next: Group | Command | undefined = Object.hasOwn(node.commands, word) ? node.commands[word] : undefined;
    if (next === undefined) throw unknownCommand(word, path, node);
    node = next;
    path.push(word);
  }
  return { path, node, rest: argv.slice(path.length) };
}

function unknownCommand(word: string, path: readonly string[], group: Group): Error {
  const near = nearest(word, Object.keys(group.commands));
  const known = Object.keys(group.commands).join(', ');
  return localFailure(
    `there is no command ${[PROGRAM, ...path, bounded(word, 60)].join(' ')}`,
    near === undefined ? `there are: ${known}` : `did you mean ${near}?`,
  );
}
