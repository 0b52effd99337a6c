// Which commit the sources are: named only where git says that they are that commit. Changed sources are called so, and
// sources that git does not know are of the commit that somebody vouches for, or of an unknown one.

import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { BuildError } from './inputs.ts';

/**
 * @param given for sources without git's folder, such as an archive of a tag
 * @returns 40 hexadecimal digits, `-modified` behind them where sources were changed since; or `unknown`
 * @throws BuildError for a commit that is none, or given where git knows it
 */
export function sourceCommit(root: string, given: string | undefined): string {
  const known = isCheckout(root);
  if (known && given !== undefined) throw new BuildError('--commit is for sources that git does not know');
  if (given !== undefined && !/^[0-9a-f]{40}$/.test(given)) throw new BuildError(`${given} is no commit: 40 digits`);
  return known ? commitOf(root) : (given ?? 'unknown');
}

/** Not a folder in somebody else's checkout, whose commit says nothing of it. */
export function isCheckout(root: string): boolean {
  try {
    return realpathSync(git(root, 'rev-parse', '--show-toplevel')) === realpathSync(root);
  } catch {
    return false; // no git, or no repository
  }
}

export function git(root: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

function commitOf(root: string): string {
  const commit = git(root, 'rev-parse', 'HEAD');
  return git(root, 'status', '--porcelain') === '' ? commit : `${commit}-modified`;
}
