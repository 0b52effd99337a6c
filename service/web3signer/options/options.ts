// The table of Web3Signer's options (those of 3522fc87, 2026-07-15, that concern eth2), and what becomes of each. A
// test holds it against the list of all of them; docs/reference/web3signer.md is generated from it.

import { acceptedOption, honoured, type OptionScope, refusedOption, type Web3SignerOption } from '../option.ts';
import { NETWORK } from './network.ts';

// Options of Web3Signer that say where keys come from and who may change them. Bulk loads from clouds are refused: a
// start without the keys that the operator asked for would look like a start with them.

const NO_CLOUD = 'asks for a bulk load from a cloud, which strongroom does not have';
const CLOUD_REMEDY =
  'export the keys as EIP-2335 keystores and use --keystores-path, or import them into the ' +
  'key table (docs/guides/key-table.md)';
const CLOUD_PART = 'does nothing: the bulk load that it belongs to is not there';
const LOADING = 'does nothing: strongroom loads keys in parallel within the memory and cores that there are';
const COMMIT_BOOST = 'does nothing: there is no commit boost API';

const KEYS: readonly Web3SignerOption[] = [
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
    acceptedOption('does nothing: key files have limits of their own (docs/specification/limits.md)'),
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
  flag('', 'signer-load-parallel', acceptedOption(LOADING)),
  text('', 'signer-load-batch-size', acceptedOption(LOADING)),
  text('', 'signer-load-sequential-threshold', acceptedOption(LOADING)),
  text('', 'signer-load-timeout', acceptedOption(LOADING)),
  text('', 'reload-timeout', acceptedOption('does nothing: a reload goes on until it has read everything')),
  flag(
    'eth2',
    'commit-boost-api-enabled',
    refusedOption('asks for the commit boost API, which strongroom does not have', 'leave it out', ['false']),
  ),
  text('eth2', 'proxy-keystores-path', acceptedOption(COMMIT_BOOST)),
  text('eth2', 'proxy-keystores-password-file', acceptedOption(COMMIT_BOOST)),
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
    flag('eth2', enabled, refusedOption(NO_CLOUD, CLOUD_REMEDY, ['false'])),
    ...parts.map((name): Web3SignerOption => ({ ...text('eth2', name, acceptedOption(CLOUD_PART)), isList: true })),
  ];
}

// Options of Web3Signer that say where it listens, whom it answers and what it writes of it.

const EVERY_HOST = ['*', 'all'];
const PROXY = 'put a proxy in front that does';
const TLS = 'takes a PKCS#12 file, and strongroom reads PEM';
const TLS_REMEDY =
  '`openssl pkcs12 -in FILE -nokeys -out cert.pem` and `openssl pkcs12 -in FILE -nocerts -noenc -out key.pem`; then ' +
  '--print-config without this option, and tls.mode: file with both files (docs/guides/web3signer.md)';
const ANY_AUTHORITY =
  'lets in whoever has a certificate of any authority of Java, and strongroom lets in clients that it knows';
const KNOWN_BY_NAME =
  '--print-config without it, then tls.client_ca with your authority and tls.known_clients with the subjects ' +
  '(docs/guides/authorization.md)';
const NO_METRICS_ALONE = 'while metrics are enabled; otherwise a warning says that it does nothing';

const LISTENING: readonly Web3SignerOption[] = [
  option(
    'http-listen-host',
    'text',
    honoured('`server.listen_address`; 127.0.0.1 unless given', 'server.listen_address'),
  ),
  option('http-listen-port', 'number', honoured('`server.listen_port`; 9000 unless given', 'server.listen_port')),
  option(
    'http-host-allowlist',
    'text',
    honoured(
      '`server.allowed_hosts`; `*` and `all` are every host, and localhost,127.0.0.1 unless given. Probes are answered',
    ),
    true,
  ),
  option(
    'http-cors-origins',
    'text',
    honoured(
      '`server.cors_allowed_origins`; `all` and `none` as there. Each is an origin (`https://example.org`), no pattern',
    ),
    true,
  ),
  option(
    'idle-connection-timeout-seconds',
    'number',
    acceptedOption('is not taken over: strongroom has limits of its own for connections'),
  ),
  option(
    'vertx-worker-pool-size',
    'number',
    acceptedOption('does nothing: there is no Vert.x; signing.max_concurrent_jobs bounds the work'),
  ),
  option(
    'access-logs-enabled',
    'boolean',
    acceptedOption('does nothing: one audit line a request is logged in any case (logging.level audit=off)'),
  ),
  option(
    'metrics-enabled',
    'boolean',
    honoured(
      '`metrics.listen_address` and `listen_port`; otherwise metrics are on a free port of ' +
        '127.0.0.1, where nobody looks',
    ),
  ),
  option(
    'metrics-host',
    'text',
    honoured(
      `\`metrics.listen_address\`, ${NO_METRICS_ALONE} (but the variable with 0.0.0.0, which the container image ` +
        'sets, does so without a word); 127.0.0.1 unless given',
    ),
  ),
  option('metrics-port', 'number', honoured(`\`metrics.listen_port\`, ${NO_METRICS_ALONE}; 9001 unless given`)),
  option(
    'metrics-host-allowlist',
    'text',
    acceptedOption(
      'is not checked, also when it is not given: metrics are answered whatever the Host says. ' +
        `Keep the port behind a firewall, or ${PROXY}`,
      EVERY_HOST,
    ),
    true,
  ),
  {
    ...option(
      'metrics-category',
      'text',
      acceptedOption('does nothing: all metrics are served (docs/reference/metrics.md)'),
      true,
    ),
    names: ['metrics-category', 'metrics-categories'],
  },
  option(
    'metrics-push-enabled',
    'boolean',
    refusedOption('asks to push metrics, which strongroom does not', 'have Prometheus scrape --metrics-port', [
      'false',
    ]),
  ),
  ...['host', 'port', 'interval', 'prometheus-job'].map((part) =>
    option(`metrics-push-${part}`, 'text', acceptedOption('does nothing: metrics are scraped, not pushed')),
  ),
  option('tls-keystore-file', 'text', refusedOption(TLS, TLS_REMEDY)),
  option('tls-keystore-password-file', 'text', refusedOption(TLS, TLS_REMEDY)),
  option(
    'tls-known-clients-file',
    'text',
    honoured(
      '`tls.known_clients` with `tls.client_auth: required`, and nobody is let in without; needs `tls.mode: file` with ' +
        'PEM files, for instance from `SVC_TLS__MODE`',
    ),
  ),
  option('tls-allow-ca-clients', 'boolean', refusedOption(ANY_AUTHORITY, KNOWN_BY_NAME, ['false'])),
  option(
    'tls-allow-any-client',
    'boolean',
    acceptedOption(
      'does nothing: no client is asked for a certificate without --tls-known-clients-file, beside which it is refused',
      ['false'],
    ),
  ),
  { ...option('logging', 'text', honoured('`logging.level`; ALL is trace')), letter: 'l' },
  option(
    'logging-format',
    'text',
    honoured(
      '`logging.format`: PLAIN is text; every other is json with strongroom’s own members, and a warning says so',
    ),
  ),
];

function option(
  name: string,
  form: Web3SignerOption['form'],
  becomes: Web3SignerOption['becomes'],
  isList = false,
): Web3SignerOption {
  return { names: [name], scope: '', form, becomes, ...(isList ? { isList } : {}) };
}

// Options of Web3Signer about slashing protection, which is on here whatever they say, and of its commands for the
// record.

const DATABASE = 'does nothing: strongroom keeps a record of its own, in a file';
const PRUNING = 'does nothing: strongroom prunes its own record, in small steps';
const NO_HIGH = 'is about a high watermark, which strongroom does not have';

const SLASHING: readonly Web3SignerOption[] = [
  text(
    '',
    'data-path',
    honoured(
      'the slashing record is `slashing_protection.sqlite` in it; without it in the first of ' +
        '--key-store-path, --keystores-path and the folder of the start, and a warning says where. Where another of ' +
        'these has a record and it has none, everything is refused',
    ),
  ),
  flag(
    'eth2',
    'slashing-protection-enabled',
    acceptedOption('never switches slashing protection off: it stays on, with a record of its own', ['true']),
  ),
  text(
    'eth2',
    'slashing-protection-db-url',
    acceptedOption(
      'is not used: strongroom keeps a record of its own. That database is imported once, ' +
        'before the first start, which is refused until then',
    ),
  ),
  text('eth2', 'slashing-protection-db-username', acceptedOption(`${DATABASE}. The import takes it`)),
  text(
    'eth2',
    'slashing-protection-db-password',
    acceptedOption(`${DATABASE}. The import takes it, from the environment`),
  ),
  text(
    'eth2',
    'slashing-protection-db-health-check-interval-milliseconds',
    acceptedOption(`${DATABASE}; server.health_check says how often it is looked at`),
  ),
  text(
    'eth2',
    'slashing-protection-db-health-check-timeout-milliseconds',
    acceptedOption(`${DATABASE}; server.health_check says how long a look may take`),
  ),
  text('eth2', 'slashing-protection-db-pool-configuration-file', acceptedOption(DATABASE)),
  flag('eth2', 'Xslashing-protection-db-connection-pool-enabled', acceptedOption(DATABASE)),
  flag('eth2', 'slashing-protection-pruning-enabled', acceptedOption(PRUNING, ['true'])),
  flag('eth2', 'slashing-protection-pruning-at-boot-enabled', acceptedOption(PRUNING)),
  text('eth2', 'slashing-protection-pruning-epochs-to-keep', acceptedOption(PRUNING)),
  text('eth2', 'slashing-protection-pruning-interval', acceptedOption(PRUNING)),
  text('eth2', 'slashing-protection-pruning-slots-per-epoch', acceptedOption(PRUNING)),
  text('eth2', 'slashing-protection-pruning-db-pool-configuration-file', acceptedOption(PRUNING)),
  text('eth2 export', 'to', honoured('`strongroom slashing export --output`')),
  text('eth2 import', 'from', honoured('`strongroom slashing import`')),
  text(
    'eth2 watermark-repair',
    'epoch',
    honoured('`strongroom slashing jump --epoch`, for every key, also those without records'),
  ),
  text(
    'eth2 watermark-repair',
    'slot',
    honoured('`strongroom slashing jump --slot`, for every key, also those without records'),
  ),
  flag(
    'eth2 watermark-repair',
    'set-high-watermark',
    refusedOption(NO_HIGH, 'to end signing at a slot, stop the signer, or `strongroom slashing retire` the keys', [
      'false',
    ]),
  ),
  flag(
    'eth2 watermark-repair',
    'remove-high-watermark',
    refusedOption(NO_HIGH, 'leave it out: nothing has to be removed', ['false']),
  ),
];

function text(scope: OptionScope, name: string, becomes: Web3SignerOption['becomes']): Web3SignerOption {
  return { names: [name], scope, form: 'text', becomes };
}

function flag(scope: OptionScope, name: string, becomes: Web3SignerOption['becomes']): Web3SignerOption {
  return { names: [name], scope, form: 'boolean', becomes };
}

export const CONFIG_FILE = 'config-file';

export const WEB3SIGNER_OPTIONS: readonly Web3SignerOption[] = [
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
  WEB3SIGNER_OPTIONS.flatMap((option) => option.names.map((name) => [name, option] as const)),
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
