// What descriptions and the reference need to know of a command tree.

import type { Flags } from '../command-line/command.ts';
import type { Command, Group } from './command.ts';
import { COMMON_FLAGS } from './settings.ts';

export const PROGRAM = 'strongroom operator';

export interface Node {
  /** The words that lead to it, after `strongroom operator`. */
  readonly path: readonly string[];
  readonly node: Group | Command;
}

/** A node and all below it. */
export function* walk(node: Group | Command, path: readonly string[] = []): Generator<Node> {
  yield { path, node };
  if (node.kind !== 'group') return;
  for (const [word, below] of Object.entries(node.commands)) yield* walk(below, [...path, word]);
}

/** Its own flags, and the common ones when it talks to a signer. */
export function flagsOf(command: Command): Flags {
  return command.kind === 'remote' ? { ...command.flags, ...COMMON_FLAGS } : command.flags;
}
