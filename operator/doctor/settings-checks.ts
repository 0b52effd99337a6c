// What can be said before anything is sent: the settings, each as a command would refuse it, and the token's source.

import { plural } from '../../common/command-line/printable.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { CommandFailure, orFailure } from '../exit.ts';
import { profileNames, profilePath } from '../profile-file.ts';
import type { SettingSteps } from '../settings.ts';
import { findToken, type TokenSource } from '../token.ts';
import { type DoctorFinding, fail, ok, warn } from './finding.ts';

const NAMES: Readonly<Record<keyof SettingSteps, string>> = {
  variables: 'variables',
  profile: 'profile',
  url: 'signer',
  attestation: 'reference values',
  authority: 'tls-ca',
  token: 'token',
  output: 'json',
  timeoutSeconds: 'timeout',
};

/** All that are refused. Without its profile a command has other settings than those that are meant. */
export function checkSettings(steps: SettingSteps, env: Terminal['env']): readonly DoctorFinding[] {
  const refused = (Object.keys(NAMES) as (keyof SettingSteps)[]).flatMap((step) => {
    const { [step]: value } = steps;
    return value instanceof CommandFailure ? [fail(NAMES[step], value)] : [];
  });
  if (steps.profile instanceof CommandFailure) {
    return refused.filter(({ check }) => check === NAMES.profile || check === NAMES.variables);
  }
  return [checkProfile(steps.profile, env), ...checkUrl(steps), ...refused];
}

function checkProfile(profile: Exclude<SettingSteps['profile'], CommandFailure>, env: Terminal['env']): DoctorFinding {
  return ok('profile', profile === undefined ? withoutProfile(env) : `${profile.name} of ${profilePath(env)}`);
}

function withoutProfile(env: Terminal['env']): string {
  const names = profileNames(env);
  const other =
    names.length === 0
      ? `${profilePath(env)} is where profiles would be, and \`strongroom operator --help\` shows one`
      : `--profile names one of ${plural(names.length, 'profile')} in ${profilePath(env)}: ${bounded(names.join(', '), 200)}`;
  return `none: flags and variables decide (${other})`;
}

function checkUrl({ url, attestation }: SettingSteps): readonly DoctorFinding[] {
  if (url instanceof CommandFailure || attestation instanceof CommandFailure) return [];
  if (url.protocol === 'http:') {
    const detail = `${url.origin}, without TLS: the token is readable on the way`;
    return [warn(NAMES.url, detail, 'use an https: URL unless nobody else can listen')];
  }
  return [
    ok(NAMES.url, `${url.origin}, known by ${attestation === undefined ? 'its certificate' : 'reference values'}`),
  ];
}

export interface ReadToken {
  readonly finding: DoctorFinding;
  readonly token?: string;
}

export async function checkToken(source: TokenSource | undefined, terminal: Terminal): Promise<ReadToken> {
  if (source === undefined) {
    const todo = 'name one with --token, SVC_OPERATOR_TOKEN or a profile; probes need none';
    return { finding: warn('token', 'none is given: most commands need one', todo) };
  }
  const found = await orFailure(findToken(source, terminal));
  if (found instanceof CommandFailure) return { finding: fail('token', found) };
  const { token, warning } = found;
  if (warning === undefined) return { finding: ok('token', `read from ${sourceOf(source.text)}`), token };
  return { finding: warn('token', warning, 'keep it in a file of mode 0600 and name that as @FILE'), token };
}

/** Without repeating a token that was written out. */
function sourceOf(text: string): string {
  if (text === '-') return 'stdin';
  return /^(?:env:|@|file:)/.test(text) ? text : 'a profile or a variable';
}
