// Where the values of the common flags come from (specification/operating.md#operator). There is no flag that skips the
// verification of the signer's certificate. A URL without TLS carries the token, so it is refused unless plaintext is
// allowed by name. With reference values the signer has to be attested.

import { readFileSync } from 'node:fs';
import type { DocumentProvider } from '../common/attestation/contract.ts';
import type { FlagValue } from '../common/command-line/arguments.ts';
import { nearest } from '../common/command-line/nearest.ts';
import type { Terminal } from '../common/command-line/terminal.ts';
import { bounded } from '../common/command-line/text.ts';
import { errorCode } from '../common/formats/error-code.ts';
import type { AttestationPolicy } from './attestation/peer-evidence.ts';
import { type GivenText, readReferenceValues } from './attestation/reference-values.ts';
import {
  COMMON_FLAGS,
  DEFAULT_MAX_AGE_SECONDS,
  DEFAULT_SIGNER_URL,
  DEFAULT_TIMEOUT_SECONDS,
  PREFIX,
  type SettingName,
  settingVariable,
} from './common-flags.ts';
import type { Peer } from './connect.ts';
import { localFailure, UsageFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';
import type { OutputFormat } from './output.ts';
import { type Profile, readProfile } from './profile.ts';
import type { TokenSource } from './token.ts';

const MAX_SECONDS = 86_400;

export interface Settings {
  readonly peer: Peer;
  readonly token: TokenSource | undefined;
  readonly output: OutputFormat;
  readonly timeoutSeconds: number;
}

/**
 * @param defaultTimeoutSeconds of the command, instead of the common one
 * @throws CommandFailure for the first of them that is refused
 */
export function resolveSettings(
  flags: Readonly<Record<string, FlagValue>>,
  env: Terminal['env'],
  provider: DocumentProvider,
  defaultTimeoutSeconds = DEFAULT_TIMEOUT_SECONDS,
): Settings {
  refuseUnknownVariables(env);
  const fromFlagOrVariable = (name: SettingName): GivenText | undefined => {
    const flag = name === 'token' && flags['auth-token'] !== undefined ? 'auth-token' : name;
    const value = flags[flag];
    // A list's members are joined by commas, as in its variable.
    if (value !== undefined && value !== false) return { text: String(value), origin: `--${flag}` };
    const variable = env[settingVariable(name)];
    return variable === undefined || variable === '' ? undefined : { text: variable, origin: settingVariable(name) };
  };
  const profile = readProfile(fromFlagOrVariable('profile')?.text, env);
  return settingsFrom(
    (name) => fromFlagOrVariable(name) ?? givenIn(profile, name),
    flags,
    provider,
    defaultTimeoutSeconds,
  );
}

/** Those of a profile alone: flags and variables name one signer, and there are several. */
export function settingsOfProfile(profile: Profile, provider: DocumentProvider): Settings {
  return settingsFrom((name) => givenIn(profile, name), {}, provider, DEFAULT_TIMEOUT_SECONDS);
}

function givenIn(profile: Profile | undefined, name: SettingName): GivenText | undefined {
  const text = profile?.values[name];
  return text === undefined ? undefined : { text, origin: `${name} of profile ${profile?.name}` };
}

function settingsFrom(
  given: GivenOf,
  flags: Readonly<Record<string, FlagValue>>,
  provider: DocumentProvider,
  defaultTimeoutSeconds: number,
): Settings {
  const url = readUrl(given('signer-url'), readSwitch(given('allow-plaintext-signer')));
  const attestation = readAttestation(given, url, provider);
  const trustedCertificates = readCertificates(given('tls-ca'));
  return {
    peer: { url, attestation, trustedCertificates, serverName: given('tls-server-name')?.text },
    token: readTokenSource(given('token'), flags),
    output: readSwitch(given('json')) ? 'json' : 'table',
    timeoutSeconds: readSeconds(given('timeout-seconds'), defaultTimeoutSeconds),
  };
}

type GivenOf = (name: SettingName) => GivenText | undefined;

function readTokenSource(
  given: GivenText | undefined,
  flags: Readonly<Record<string, FlagValue>>,
): TokenSource | undefined {
  if (flags['token'] !== undefined && flags['auth-token'] !== undefined) {
    throw new UsageFailure('--token and --auth-token are the same: give one of them');
  }
  return given;
}

function readAttestation(given: GivenOf, url: URL, provider: DocumentProvider): AttestationPolicy | undefined {
  const anyConfiguration = readSwitch(given('any-configuration'));
  const referenceValues = readReferenceValues(given('pcrs'), given('pcr'), anyConfiguration);
  const maxAge = given('max-age');
  if (referenceValues === undefined) {
    const about = maxAge ?? (anyConfiguration ? given('any-configuration') : undefined);
    if (about !== undefined)
      throw new UsageFailure(
        `${about.origin} is about evidence: it needs --pcrs or --pcr`,
        'give the reference values of the enclave, or leave it out',
      );
    return undefined;
  }
  if (url.protocol !== 'https:')
    throw new UsageFailure(
      'reference values need an https: URL: without TLS nobody is attested',
      'write https: in the URL, or leave --pcrs and --pcr out for a signer that is no enclave',
    );
  const ordinary = given('tls-ca') ?? given('tls-server-name');
  if (ordinary !== undefined) {
    throw new UsageFailure(
      `${ordinary.origin} is for an ordinary certificate, but an enclave is known by its reference values`,
      'leave one of the two out; another signer may have a profile of its own',
    );
  }
  return { provider, referenceValues, maxAgeSeconds: readSeconds(maxAge, DEFAULT_MAX_AGE_SECONDS), now: Date.now };
}

/** A mistyped variable would leave its setting at the default unnoticed. */
function refuseUnknownVariables(env: Terminal['env']): void {
  const known = (Object.keys(COMMON_FLAGS) as SettingName[]).map(settingVariable);
  const unknown = Object.keys(env).find((name) => name.startsWith(PREFIX) && !known.includes(name));
  if (unknown === undefined) return;
  const near = nearest(unknown, known);
  throw new UsageFailure(
    `the environment variable ${bounded(unknown, 60)} is no setting`,
    near === undefined ? `unset it: names that start with ${PREFIX} are for settings` : `did you mean ${near}?`,
  );
}

function readUrl(given: GivenText | undefined, allowPlaintext: boolean): URL {
  const { text, origin } = given ?? { text: DEFAULT_SIGNER_URL, origin: 'the default' };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['https:', 'http:'].includes(url.protocol) || url.hostname === '') {
    throw new UsageFailure(`${origin} is not an https: URL`, `for example ${DEFAULT_SIGNER_URL}`);
  }
  if (url.username !== '' || url.password !== '')
    throw new UsageFailure(
      `${origin}: a URL carries no credentials here`,
      'take user and password out; give the token with --token',
    );
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new UsageFailure(`${origin} has more than a host and a port`, `write ${url.protocol}//${url.host}`);
  }
  if (url.protocol === 'http:' && !allowPlaintext) {
    throw new UsageFailure(
      `${origin} is without TLS: the token would be readable on the way`,
      'use an https: URL, or --allow-plaintext-signer where nobody else can listen',
    );
  }
  return url;
}

function readSwitch(given: GivenText | undefined): boolean {
  if (given === undefined) return false;
  if (given.text !== 'true' && given.text !== 'false') throw new UsageFailure(`${given.origin} is true or false`);
  return given.text === 'true';
}

function readCertificates(given: GivenText | undefined): Buffer | undefined {
  if (given === undefined) return undefined;
  let pem: Buffer;
  try {
    pem = readFileSync(given.text);
  } catch (error) {
    const code = errorCode(error) ?? 'unreadable';
    throw fileFailure(`${given.origin}: ${printablePath(given.text)}`, 'read', code);
  }
  // Node takes a file without certificates for "trust nothing", which then looks like a fault of the signer.
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) {
    throw localFailure(`${given.origin}: ${printablePath(given.text)} holds no PEM certificate`);
  }
  return pem;
}

export function readSeconds(given: GivenText | undefined, defaultSeconds: number): number {
  if (given === undefined) return defaultSeconds;
  const seconds = /^[0-9]{1,6}$/.test(given.text) ? Number(given.text) : 0;
  if (seconds < 1 || seconds > MAX_SECONDS) {
    throw new UsageFailure(`${given.origin} is a whole number of seconds, 1 to ${MAX_SECONDS}`);
  }
  return seconds;
}

function printablePath(path: string): string {
  return bounded(path, 200);
}
