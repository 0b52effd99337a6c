// Which commit the sources are: named only where git says that they are that commit. Changed sources are called so, and
// sources that git does not know are of the commit that somebody vouches for, or of an unknown one.

import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { BuildError } from './inputs.ts';

/**
 * @param given for sources without git's folder, such as an archive of a tag
 * @throws BuildError for a commit that is none, or given where git knows it
 */
export function sourceCommit(root: string, given: string | undefined): string {
  const known = isCheckout(root);
  if (known && given !== undefined) throw new BuildError('--commit is for sources that git does not know');
  if (given !== undefined && !/^[0-9a-f]{40}$/.test(given)) throw new BuildError(`${given} is no commit: 40 digits`);
  return known ? commitOf(root) : (given ?? 'unknown');
}

/** Not a folder in a checkout of others. @throws BuildError for a checkout that another user owns */
export function isCheckout(root: string): boolean {
  try {
    return realpathSync(git(root, 'rev-parse', '--show-toplevel')) === realpathSync(root);
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : '';
    if (!said.includes('dubious ownership')) return false; // no git, or no repository
    throw new BuildError(`git does not say which commit ${root} is: another user owns it (dubious ownership)`, [
      `run as its owner, or allow it: git config --global --add safe.directory ${root}`,
    ]);
  }
}

export function git(root: string, ...args: readonly string[]): string {
  const env = { ...process.env, LC_ALL: 'C' };
  return execFileSync('git', ['-C', root, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  }).trim();
}

function commitOf(root: string): string {
  const commit = git(root, 'rev-parse', 'HEAD');
  return git(root, 'status', '--porcelain') === '' ? commit : `${commit}-modified`;
}
