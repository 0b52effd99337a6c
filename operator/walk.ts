// What descriptions and the reference need to know of a command tree.

import type { Flags } from '../command-line/command.ts';
import { FORMER_OUTPUT } from '../command-line/json-output.ts';
import type { Command, Group } from './command.ts';
import { COMMON_FLAGS } from './common-flags.ts';

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

/**
 * Its own flags, and the common ones when it talks to a signer. `--output json` of earlier versions is read where
 * `--output` is no file.
 */
export function flagsOf(command: Command): Flags {
  const { kind, flags } = command;
  return kind === 'remote' ? { ...FORMER_OUTPUT, ...flags, ...COMMON_FLAGS } : flags;
}
