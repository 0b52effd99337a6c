// What can be said before anything is sent: the profile, the settings, the token's source, and the name of the host.

import type { FlagValue } from '../../command-line/arguments.ts';
import type { Terminal } from '../../command-line/terminal.ts';
import { bounded, plural } from '../../command-line/text.ts';
import type { DocumentProvider } from '../attestation/provider.ts';
import { variableOf } from '../common-flags.ts';
import { type Peer, resolveHost } from '../connect.ts';
import { connectionFailure } from '../connection-failure.ts';
import { readProfile } from '../profile.ts';
import { profileNames, profilePath } from '../profile-file.ts';
import { resolveSettings, type Settings } from '../settings.ts';
import { readToken } from '../token.ts';
import { type DoctorFinding, fail, ok, skipped, warn } from './finding.ts';

export interface Asked {
  readonly flags: Readonly<Record<string, FlagValue>>;
  readonly terminal: Terminal;
  readonly provider: DocumentProvider;
}

export function checkProfile({ flags, terminal: { env } }: Asked): DoctorFinding {
  const named = flags['profile'] ?? env[variableOf('profile')];
  try {
    const profile = readProfile(typeof named === 'string' && named !== '' ? named : undefined, env);
    return ok('profile', profile === undefined ? withoutProfile(env) : `${profile.name} of ${profilePath(env)}`);
  } catch (error) {
    return fail('profile', error);
  }
}

function withoutProfile(env: Terminal['env']): string {
  const names = profileNames(env);
  const other =
    names.length === 0
      ? `${profilePath(env)} is where profiles would be, and \`strongroom operator --help\` shows one`
      : `--profile names one of ${plural(names.length, 'profile')} in ${profilePath(env)}: ${bounded(names.join(', '), 200)}`;
  return `none: flags and variables decide (${other})`;
}

export function checkSettings({ flags, terminal, provider }: Asked): {
  readonly finding: DoctorFinding;
  readonly settings?: Settings;
} {
  try {
    const settings = resolveSettings(flags, terminal.env, provider);
    const { url, attestation } = settings.peer;
    if (url.protocol === 'http:') {
      const detail = `${url.origin}, without TLS: the token is readable on the way`;
      return { finding: warn('signer', detail, 'use an https: URL unless nobody else can listen'), settings };
    }
    const known = attestation === undefined ? 'known by its certificate' : 'known by reference values';
    return { finding: ok('signer', `${url.origin}, ${known}`), settings };
  } catch (error) {
    return { finding: fail('signer', error) };
  }
}

/** What readToken warns of becomes the finding. */
export async function checkTokenSource(
  { token }: Settings,
  terminal: Terminal,
): Promise<{ readonly finding: DoctorFinding; readonly token?: string }> {
  if (token === undefined) {
    const todo = 'name one with --token, SVC_OPERATOR_TOKEN or a profile; probes need none';
    return { finding: warn('token', 'none is given: most commands need one', todo) };
  }
  const notes: string[] = [];
  const stderr = { write: (text: string) => notes.push(text) } as unknown as Terminal['stderr'];
  try {
    const value = await readToken(token, { ...terminal, stderr });
    const [note] = notes;
    if (note === undefined) return { finding: ok('token', `read from ${sourceOf(token.text)}`), token: value };
    const todo = 'keep it in a file of mode 0600 and name that as @FILE';
    return { finding: warn('token', note.trim().replace(/^warning: /, ''), todo), token: value };
  } catch (error) {
    return { finding: fail('token', error) };
  }
}

/** Without repeating a token that was written out. */
function sourceOf(text: string): string {
  if (text === '-') return 'stdin';
  return /^(?:env:|@|file:)/.test(text) ? text : 'a profile or a variable';
}

export async function checkName(peer: Peer, timeoutSeconds: number): Promise<DoctorFinding> {
  try {
    const addresses = await resolveHost(peer.url);
    return addresses === undefined
      ? skipped('name', 'the URL has an address')
      : ok('name', `${peer.url.hostname} is ${addresses.join(', ')}`);
  } catch (error) {
    const attempt = { peer, timeoutSeconds, timedOut: false, maybeDone: false };
    return fail('name', connectionFailure(error, attempt), 'correct the URL, or the name server of this machine');
  }
}
