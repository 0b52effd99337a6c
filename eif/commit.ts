// Which commit the sources are: named only where every file is the commit's own, byte for byte, and git knows of none
// besides. The build calls changed sources so. Sources that git does not know are of the commit that the builder names,
// or of an unknown one.

import { execFileSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { BuildError } from './inputs.ts';

/**
 * @param given for sources without git's folder, such as an archive of a tag
 * @throws BuildError for a text that is no commit, or a commit that was given where git knows it
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
  return gitWith('', root, ...args);
}

/** @param input that git reads */
function gitWith(input: string, root: string, ...args: readonly string[]): string {
  // `git replace` shows another object under a commit's name.
  const env = { ...process.env, LC_ALL: 'C', GIT_NO_REPLACE_OBJECTS: '1' };
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', input, stdio: 'pipe', env }).trim();
}

function commitOf(root: string): string {
  const commit = git(root, 'rev-parse', 'HEAD');
  const isSame = git(root, 'status', '--porcelain') === '' && hasItsBytes(root, commit);
  return isSame ? commit : `${commit}-modified`;
}

/**
 * What `git status` can be told not to see: a file that is assumed to be unchanged or kept out of a sparse checkout, or
 * one that a filter makes equal before git compares.
 */
function hasItsBytes(root: string, commit: string): boolean {
  const files = git(root, 'ls-tree', '-r', '-z', '--format=%(objectname) %(path)', commit).split('\0').filter(Boolean);
  const paths = files.map((file) => file.slice(file.indexOf(' ') + 1));
  if (!paths.every((path) => existsSync(join(root, path)))) return false;
  const hashes = gitWith(paths.join('\n'), root, 'hash-object', '--no-filters', '--stdin-paths').split('\n');
  return files.every((file, place) => file.startsWith(`${hashes[place]} `));
}
