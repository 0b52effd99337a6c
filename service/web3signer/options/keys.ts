// Options of Web3Signer that say where keys come from and who may change them. Bulk loads from clouds are refused: a
// start without the keys that somebody asked for would look like a start with them.

import { accepted, honoured, refused, type Web3SignerOption } from '../option.ts';

const NO_CLOUD = 'asks for a bulk load from a cloud, which strongroom does not have';
const CLOUD_REMEDY =
  'export the keys as EIP-2335 keystores and use --keystores-path, or import them into the ' +
  'key table (docs/guides/key-table.md)';
const CLOUD_PART = 'does nothing: the bulk load that it belongs to is not there';
const LOADING = 'does nothing: strongroom loads keys in parallel within the memory and cores that there are';
const COMMIT_BOOST = 'does nothing: there is no commit boost API';

export const KEYS: readonly Web3SignerOption[] = [
  {
    names: ['key-store-path', 'key-config-path'],
    scope: '',
    form: 'text',
    becomes: honoured(
      '`key_sources.filesystem.paths`; the folder of the start when neither it nor --keystores-path is given',
    ),
  },
  text(
    '',
    'key-store-config-file-max-size',
    accepted('does nothing: key files have limits of their own (docs/specification/limits.md)'),
  ),
  text('eth2', 'keystores-path', honoured('`key_sources.filesystem.keystores.path`')),
  text('eth2', 'keystores-passwords-path', honoured('`key_sources.filesystem.keystores.passwords_path`')),
  text('eth2', 'keystores-password-file', honoured('`key_sources.filesystem.keystores.password_file`')),
  {
    names: ['key-manager-api-enabled', 'enable-key-manager-api'],
    scope: 'eth2',
    form: 'boolean',
    becomes: honoured(
      '`http.key_manager_api.enabled`; imported keystores are kept in `imported-keystores` in --key-store-path ' +
        '(`key_sources.memory.persist_dir`), or in memory where that cannot be written, and a warning says so',
    ),
  },
  flag(
    'eth2',
    'Xkey-manager-skip-keystore-storage',
    honoured('imported keystores are kept in memory alone; with a warning not, where some are on disk already'),
  ),
  flag('', 'signer-load-parallel', accepted(LOADING)),
  text('', 'signer-load-batch-size', accepted(LOADING)),
  text('', 'signer-load-sequential-threshold', accepted(LOADING)),
  text('', 'signer-load-timeout', accepted(LOADING)),
  text('', 'reload-timeout', accepted('does nothing: a reload goes on until it has read everything')),
  flag(
    'eth2',
    'commit-boost-api-enabled',
    refused('asks for the commit boost API, which strongroom does not have', 'leave it out', ['false']),
  ),
  text('eth2', 'proxy-keystores-path', accepted(COMMIT_BOOST)),
  text('eth2', 'proxy-keystores-password-file', accepted(COMMIT_BOOST)),
  ...bulk('azure-vault-enabled', [
    'azure-vault-name',
    'azure-vault-auth-mode',
    'azure-client-id',
    'azure-client-secret',
    'azure-tenant-id',
    'azure-tags',
    'azure-response-timeout',
  ]),
  ...bulk('aws-secrets-enabled', [
    'aws-secrets-access-key-id',
    'aws-secrets-secret-access-key',
    'aws-secrets-auth-mode',
    'aws-secrets-region',
    'aws-secrets-prefixes-filter',
    'aws-secrets-tag',
    'aws-connection-cache-size',
    'aws-endpoint-override',
  ]),
  ...bulk('gcp-secrets-enabled', ['gcp-project-id', 'gcp-secrets-filter']),
];

function bulk(enabled: string, parts: readonly string[]): Web3SignerOption[] {
  return [
    flag('eth2', enabled, refused(NO_CLOUD, CLOUD_REMEDY, ['false'])),
    ...parts.map((name): Web3SignerOption => ({ ...text('eth2', name, accepted(CLOUD_PART)), isList: true })),
  ];
}

function text(scope: '' | 'eth2', name: string, becomes: Web3SignerOption['becomes']): Web3SignerOption {
  return { names: [name], scope, form: 'text', becomes };
}

function flag(scope: '' | 'eth2', name: string, becomes: Web3SignerOption['becomes']): Web3SignerOption {
  return { names: [name], scope, form: 'boolean', becomes };
}
