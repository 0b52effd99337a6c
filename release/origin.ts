// What a release says it was made from: the version, the commit, and the commit's time, which every file in it bears.
// A commit is named only where git says that the sources are that commit; changed sources are called so, and sources
// that git does not know are of an unknown commit.

import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { BuildError } from '../eif/inputs.ts';
import { VERSION } from '../enclave/api/version.ts';

export interface Origin {
  readonly version: string;
  /** 40 hexadecimal digits, `-modified` behind them where sources were changed since; or `unknown`. */
  readonly commit: string;
  readonly timeSeconds: number;
}

/** reproducible-builds.org, SOURCE_DATE_EPOCH: it goes over the commit's time. */
const TIME_VARIABLE = 'SOURCE_DATE_EPOCH';
/** The times of an archive have 33 bits. */
const MAX_TIME_SECONDS = 8_589_934_591;

export interface Given {
  /** For sources without git's folder, such as an archive of a tag; whoever gives it vouches for it. */
  readonly commit: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** @throws BuildError for a commit or a time that is none, or another commit than git's */
export function originOf(root: string, { commit, env }: Given): Origin {
  const known = isCheckout(root);
  if (known && commit !== undefined) throw new BuildError('--commit is for sources that git does not know');
  if (commit !== undefined && !/^[0-9a-f]{40}$/.test(commit)) throw new BuildError(`${commit} is no commit: 40 digits`);
  const time = env[TIME_VARIABLE] ?? (known ? git(root, 'log', '-1', '--format=%ct') : '0');
  return {
    version: VERSION,
    commit: known ? commitOf(root) : (commit ?? 'unknown'),
    timeSeconds: secondsOf(time),
  };
}

export function isoTime({ timeSeconds }: Origin): string {
  return new Date(timeSeconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Not a folder in somebody else's checkout, whose commit says nothing of it. */
function isCheckout(root: string): boolean {
  try {
    return realpathSync(git(root, 'rev-parse', '--show-toplevel')) === realpathSync(root);
  } catch {
    return false; // no git, or no repository
  }
}

function commitOf(root: string): string {
  const commit = git(root, 'rev-parse', 'HEAD');
  return git(root, 'status', '--porcelain') === '' ? commit : `${commit}-modified`;
}

function git(root: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

function secondsOf(text: string): number {
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= MAX_TIME_SECONDS) return seconds;
  throw new BuildError(`${TIME_VARIABLE} is no time in seconds since 1970: ${text}`);
}
