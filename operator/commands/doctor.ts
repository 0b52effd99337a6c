// `strongroom operator doctor` (docs/guides/doctor.md). It goes on as far as the checks before let it, and ends with
// the exit code of the first one that failed.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { plural } from '../../common/command-line/printable.ts';
import { profilePath } from '../../common/command-line/profile-path.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { createClient } from '../client.ts';
import { localCommand } from '../command.ts';
import { AUTH_TOKEN, COMMON_FLAGS } from '../common-flags.ts';
import {
  type DoctorFinding,
  fail,
  findingsJson,
  ok,
  renderFindings,
  skipped,
  verdictOf,
  warn,
} from '../doctor/finding.ts';
import {
  checkClock,
  checkConnection,
  checkHealth,
  checkName,
  checkOwnToken,
  checkScopes,
  checkStatus,
  checkUpcheck,
  checkVersions,
} from '../doctor/signer-checks.ts';
import { CommandFailure, orFailure } from '../exit.ts';
import { createOutput } from '../output.ts';
import { profileNames } from '../profile-file.ts';
import { type SettingSteps, settingSteps, settingsOf } from '../settings.ts';
import { findToken, type TokenSource } from '../token.ts';

export const doctor = localCommand(
  {
    summary: 'Find out why commands do not work from here, and what to do',
    flags: { ...COMMON_FLAGS, ...AUTH_TOKEN },
    notes: [
      'It sends GETs only: the probes, the holder of the token, its status and the list of public keys. A token that ' +
        'may not do one of these leaves a refusal in the audit log of the signer.',
    ],
    examples: ['doctor --profile mainnet', 'doctor --signer-url https://signer-1.example:9443 --json'],
  },

  async ({ values, terminal, provider }) => {
    const findings: DoctorFinding[] = [];
    const steps = settingSteps(values, terminal.env, provider);
    await examineAll(steps, terminal, (...some) => findings.push(...some));
    createOutput(steps.output === 'json' ? 'json' : 'table', terminal).answer(
      { value: findings, text: findingsJson(findings) },
      renderFindings,
    );
    if (verdictOf(findings) !== 'fail') return;
    const failed = findings.filter(({ status }) => status === 'fail');
    const names = failed.map(({ check }) => check).join(', ');
    throw new CommandFailure(failed[0]?.exitCode ?? EXIT.failed, `failed: ${names}`, failed[0]?.todo ?? undefined);
  },
);

async function examineAll(
  steps: SettingSteps,
  terminal: Terminal,
  found: (...findings: readonly DoctorFinding[]) => void,
): Promise<void> {
  const asSet = checkSettings(steps, terminal.env);
  found(...asSet);
  if (steps.profile instanceof CommandFailure || steps.token instanceof CommandFailure) return;
  const source = await checkToken(steps.token, terminal);
  found(source.finding);
  if (verdictOf(asSet) === 'fail') return;
  const way = settingsOf(steps);
  const name = await checkName(way);
  found(name);
  if (name.status === 'fail') return;
  const connection = await checkConnection(way);
  found(connection);
  if (connection.status === 'fail') return;
  const client = createClient({ ...way, token: source.token });
  const up = await checkUpcheck(client);
  found(up.finding);
  if (up.finding.status === 'fail') return;
  found(checkClock(up));
  const health = await checkHealth(client);
  found(health);
  if (source.token === undefined) {
    found(skipped('scopes', 'no token is given'));
    found(checkVersions(undefined));
    return;
  }
  if (health.exitCode === EXIT.sealed) {
    found(skipped('scopes', 'a sealed signer knows no token'));
    found(checkVersions(undefined));
    return;
  }
  found(await checkOwnToken(client));
  const scopes = await checkScopes(client);
  found(scopes.finding);
  found(checkStatus(scopes.status));
  found(checkVersions(scopes.status));
}

// What can be said before anything is sent: the settings, each as a command would refuse it, and the token's source.

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
function checkSettings(steps: SettingSteps, env: Terminal['env']): readonly DoctorFinding[] {
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

interface ReadToken {
  readonly finding: DoctorFinding;
  readonly token?: string;
}

async function checkToken(source: TokenSource | undefined, terminal: Terminal): Promise<ReadToken> {
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
