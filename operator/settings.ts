// Where the values of the common flags (common-flags.ts) come from: flags, then SVC_OPERATOR_* variables, then the
// profile, then defaults (specification/operating.md#operator). There is no flag that skips the verification of the
// signer's certificate. A URL without TLS is refused unless plaintext is allowed by name, because it carries the token.
// Reference values say that the signer is an enclave: it then has to be attested, and nothing that belongs to an
// ordinary signer stands in for that.

import { readFileSync } from 'node:fs';
import type { FlagValue } from '../command-line/arguments.ts';
import { nearest } from '../command-line/nearest.ts';
import type { Terminal } from '../command-line/terminal.ts';
import { bounded } from '../command-line/text.ts';
import { errorCode } from '../formats/error-code.ts';
import type { AttestationPolicy } from './attestation/peer-evidence.ts';
import type { DocumentProvider } from './attestation/provider.ts';
import { type GivenText, readReferenceValues } from './attestation/reference-values.ts';
import {
  COMMON_FLAGS,
  DEFAULT_MAX_AGE_SECONDS,
  DEFAULT_SIGNER_URL,
  DEFAULT_TIMEOUT_SECONDS,
  PREFIX,
  type SettingName,
  variableOf,
} from './common-flags.ts';
import type { Peer } from './connect.ts';
import { localFailure, UsageFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';
import { OUTPUT_FORMATS, type OutputFormat } from './output.ts';
import { type Profile, readProfile } from './profile.ts';
import type { TokenSource } from './token.ts';

const MAX_SECONDS = 86_400;
/** The variable of `json` before `--output` named a file everywhere. */
const FORMER_VARIABLE = `${PREFIX}OUTPUT`;

export interface Settings {
  readonly peer: Peer;
  readonly token: TokenSource | undefined;
  readonly output: OutputFormat;
  readonly timeoutSeconds: number;
  /** What to tell whoever wrote settings by their former names. */
  readonly warnings: readonly string[];
}

/**
 * @param flags the values of the common flags as parsed
 * @param provider whose attestation documents are believed
 * @param defaultTimeoutSeconds of the command, instead of the common one
 */
export function resolveSettings(
  flags: Readonly<Record<string, FlagValue>>,
  env: Terminal['env'],
  provider: DocumentProvider,
  defaultTimeoutSeconds = DEFAULT_TIMEOUT_SECONDS,
): Settings {
  refuseUnknownVariables(env);
  if (flags['token'] !== undefined && flags['auth-token'] !== undefined) {
    throw new UsageFailure('--token and --auth-token are the same: give one of them');
  }
  const fromFlagOrVariable = (name: SettingName): GivenText | undefined => {
    const flag = name === 'token' && flags['auth-token'] !== undefined ? 'auth-token' : name;
    const value = flags[flag];
    // A list's members are joined by commas, as in its variable.
    if (value !== undefined && value !== false) return { text: String(value), origin: `--${flag}` };
    const variable = env[variableOf(name)];
    return variable === undefined || variable === '' ? undefined : { text: variable, origin: variableOf(name) };
  };
  const profile = readProfile(fromFlagOrVariable('profile')?.text, env);
  const given = (name: SettingName): GivenText | undefined => {
    const fromProfile = profile?.values[name];
    return (
      fromFlagOrVariable(name) ??
      (fromProfile === undefined ? undefined : { text: fromProfile, origin: `${name} of profile ${profile?.name}` })
    );
  };
  return {
    peer: readPeer(given, provider),
    token: given('token'),
    ...readFormat(fromFlagOrVariable('json') ?? formerVariable(env), given('json'), profile),
    timeoutSeconds: readSeconds(given('timeout-seconds'), defaultTimeoutSeconds),
  };
}

type GivenOf = (name: SettingName) => GivenText | undefined;

function readPeer(given: GivenOf, provider: DocumentProvider): Peer {
  const url = readUrl(given('signer-url'), readSwitch(given('allow-plaintext-signer')));
  const attestation = readAttestation(given, url, provider);
  return {
    url,
    attestation,
    trustedCertificates: readCertificates(given('tls-ca')),
    serverName: given('tls-server-name')?.text,
  };
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
  const known = (Object.keys(COMMON_FLAGS) as SettingName[]).map(variableOf);
  const unknown = Object.keys(env).find(
    (name) => name.startsWith(PREFIX) && !known.includes(name) && name !== FORMER_VARIABLE,
  );
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

function formerVariable(env: Terminal['env']): GivenText | undefined {
  const text = env[FORMER_VARIABLE];
  return text === undefined || text === '' ? undefined : { text, origin: FORMER_VARIABLE };
}

/** The higher layers first; what was called `output` once is still read. */
function readFormat(
  above: GivenText | undefined,
  json: GivenText | undefined,
  profile: Profile | undefined,
): Pick<Settings, 'output' | 'warnings'> {
  const former = profile?.values['output'];
  const fromProfile = former === undefined ? undefined : { text: former, origin: `output of profile ${profile?.name}` };
  const given = above ?? json ?? fromProfile;
  const isFormer = given !== undefined && (given === fromProfile || given.origin === FORMER_VARIABLE);
  if (!isFormer) return { output: readSwitch(given) ? 'json' : 'table', warnings: [] };
  const output = OUTPUT_FORMATS.find((known) => known === given.text);
  if (output === undefined) throw new UsageFailure(`${given.origin} is one of ${OUTPUT_FORMATS.join(', ')}`);
  const now = given === fromProfile ? `json: ${output === 'json'}` : `${variableOf('json')}=${output === 'json'}`;
  return { output, warnings: [`${given.origin} is ${now} now; a later version will not know it`] };
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
