// What a release says it was made from: the version, the commit, and the commit's time, which every file bears. A
// commit is named only where git says that the sources are that commit.

import { git, isCheckout, sourceCommit } from '../../eif/commit.ts';
import { BuildError } from '../../eif/inputs.ts';
import { VERSION } from '../../signer/api/version.ts';

export interface Origin {
  readonly version: string;
  readonly commit: string;
  readonly timeSeconds: number;
}

/** reproducible-builds.org, SOURCE_DATE_EPOCH: it goes over the commit's time. */
const TIME_VARIABLE = 'SOURCE_DATE_EPOCH';
/** The times of an archive have 33 bits. */
const MAX_TIME_SECONDS = 8_589_934_591;

interface OriginInput {
  /** For sources without git's folder, such as an archive of a tag; whoever gives it vouches for it. */
  readonly commit: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

export function originOf(root: string, { commit, env }: OriginInput): Origin {
  const time = env[TIME_VARIABLE] ?? (isCheckout(root) ? git(root, 'log', '-1', '--format=%ct') : '0');
  return {
    version: VERSION,
    commit: sourceCommit(root, commit),
    timeSeconds: secondsOf(time),
  };
}

export function isoTime({ timeSeconds }: Origin): string {
  return new Date(timeSeconds * 1000).toISOString().replace('.000Z', 'Z');
}

function secondsOf(text: string): number {
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= MAX_TIME_SECONDS) return seconds;
  throw new BuildError(`${TIME_VARIABLE} is no time in seconds since 1970: ${text}`);
}
