// The flags of every remote command, which are also settings: variables and members of a profile (settings.ts). Data
// alone, since help and completion load it.

import type { Flags } from '../common/command-line/command.ts';

/** specification/operating.md#programs */
export const DEFAULT_SIGNER_URL = 'https://127.0.0.1:9443';
export const DEFAULT_TIMEOUT_SECONDS = 30;
export const PREFIX = 'SVC_OPERATOR_';

/** The NSM's certificates live three hours, and so does what they prove. */
export const DEFAULT_MAX_AGE_SECONDS = 10_800;

export const COMMON_FLAGS = {
  token: {
    placeholder: 'TOKEN',
    meaning: 'env:VAR, @FILE, - (stdin), or the token itself (visible to others)',
  },
  'signer-url': { placeholder: 'URL', meaning: `The signer; ${DEFAULT_SIGNER_URL} when not given` },
  'tls-ca': { placeholder: 'FILE', meaning: 'PEM certificates to trust instead of the public ones' },
  'tls-server-name': { placeholder: 'NAME', meaning: "The name in the signer's certificate, if not the URL's" },
  'allow-plaintext-signer': { meaning: 'Permit an http: URL; the token is then readable on the way' },
  pcrs: { placeholder: 'FILE', meaning: 'Reference values of an enclave, which then must be attested' },
  pcr: { placeholder: 'N=HEX', meaning: 'One reference value; repeat for others', repeatable: true },
  'any-configuration': { meaning: 'Accept reference values without PCR16, and so any configuration' },
  'max-age': {
    placeholder: 'SECONDS',
    meaning: `Oldest evidence accepted, in a certificate; default ${DEFAULT_MAX_AGE_SECONDS}`,
  },
  json: { meaning: "Print the signer's answer as JSON, not a table" },
  'timeout-seconds': { placeholder: 'SECONDS', meaning: 'Give up after so long without progress' },
  profile: { placeholder: 'NAME', meaning: 'A profile of the profile file', isProfile: true },
} as const satisfies Flags;

/** Another name of --token, for `status` and `seal`. */
export const AUTH_TOKEN = { 'auth-token': { placeholder: 'TOKEN', meaning: 'The same as --token' } } as const;

export type SettingName = keyof typeof COMMON_FLAGS;

export function settingVariable(name: SettingName): string {
  return PREFIX + name.toUpperCase().replaceAll('-', '_');
}
