// The table of Web3Signer's options (those of 3522fc87, 2026-07-15, that concern eth2), and what becomes of each. A
// test holds it against the list of all of them; docs/reference/web3signer.md is generated from it.

import { honoured, type Web3SignerOption } from '../option.ts';
import { KEYS } from './keys.ts';
import { LISTENING } from './listening.ts';
import { NETWORK } from './network.ts';
import { SLASHING } from './slashing.ts';

export const CONFIG_FILE = 'config-file';

export const OPTIONS: readonly Web3SignerOption[] = [
  {
    names: [CONFIG_FILE],
    scope: '',
    form: 'text',
    becomes: honoured('read as there, below the command line and the environment; what is no option is refused'),
  },
  ...LISTENING,
  ...KEYS,
  ...NETWORK,
  ...SLASHING,
];

export const OPTION_OF_NAME: ReadonlyMap<string, Web3SignerOption> = new Map(
  OPTIONS.flatMap((option) => option.names.map((name) => [name, option] as const)),
);

/** Options of `eth1`, which is refused as a whole: for a better answer than "unknown". Some are eth2's, too. */
export const ETH1_OPTIONS: readonly string[] = [
  'aws-kms-client-cache-size',
  'chain-id',
  ...['host', 'path', 'port', 'proxy-host', 'proxy-password', 'proxy-port', 'proxy-username', 'request-timeout'].map(
    (part) => `downstream-http-${part}`,
  ),
  ...['ca-auth-enabled', 'enabled', 'known-servers-file', 'keystore-file', 'keystore-password-file'].map(
    (part) => `downstream-http-tls-${part}`,
  ),
  ...['access-key-id', 'auth-mode', 'enabled', 'region', 'secret-access-key', 'tag'].map((part) => `aws-kms-${part}`),
];
