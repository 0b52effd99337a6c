// The option table: the one source of option names, defaults, flags, environment names, validation, help text and
// docs/reference/configuration.md (specification/operating.md#configuration). A flag is `--` and the path with dashes
// unless the row names another; the environment variable is `SVC_` and the path in upper case, `__` for dots.

import { ageRecipientSchema, ceremonySchema } from '../../ceremony/definition.ts';
import { egressEndpointsSchema } from '../api/egress.ts';
import { BODY_BUDGET_BYTES } from '../api/limits.ts';
import { OPERATIONS } from '../api/operations.ts';
import { parentProxySchema } from '../api/parent-proxy.ts';
import { SLOT_DURATION_MS_LIMITS } from '../signing/config-limits.ts';
import { type KnownClient, knownClientsSchema } from './known-clients.ts';
import { configName, forkEpochsSchema, forkVersionsSchema } from './network-values.ts';
import { flagged, type Option, unflagged, type ValueOf } from './option.ts';
import type { Secret } from './secret.ts';
import { type StaticAuth, secretSchema, staticAuthSchema } from './static-auth.ts';
import {
  boolean,
  corsOrigins,
  deploymentId,
  hex,
  hostNames,
  httpUrl,
  integer,
  type Kind,
  keyArn,
  listenAddress,
  listOf,
  listThat,
  logFilter,
  object,
  oneOf,
  port,
  postgresUrl,
  publicKeys,
  safeCidrs,
  sealedBytes,
  table,
  text,
} from './values.ts';

/** Days, for intervals and timeouts that only need some end. */
const DAY = 86_400;
const HARDENING = oneOf('off', 'best_effort', 'required');
const SECONDS = integer(1, DAY);
const SECONDS_OR_OFF = integer(0, DAY);
const CONCURRENCY = integer(1, 1024);
/** Made a Secret before it is read (load.ts). */
const secret: Kind<Secret> = { expects: 'env:VAR_NAME, file:/PATH or the secret', form: 'text', schema: secretSchema };
const ITEMS = integer(1, 10_000);
const NO_CLIENTS: KnownClient[] = [];
const NO_STATIC_AUTH: StaticAuth = { policies: [], anonymous: { policies: [] }, tokens: [] };

export const OPTIONS = {
  'server.listen_address': flagged(listenAddress, '0.0.0.0', 'HTTP bind address'),
  'server.listen_port': flagged(port, 9000, 'HTTP port; 0 takes any free port'),
  'server.request_timeout_seconds': flagged(integer(1, 3600), 30, 'Per-request timeout of signing handlers'),
  'server.graceful_shutdown_timeout_seconds': flagged(
    integer(0, 3600),
    25,
    'Grace time of ending, for everything: requests are closed by force up to 2 s before it is over, so that the slashing store is closed in order',
  ),
  'server.cors_allowed_origins': flagged(
    corsOrigins,
    null,
    'Origins of web pages that may use the API; null or omitted: none but pages of the signer’s own host, and no CORS; ["*"] allows all',
  ),
  'server.allowed_hosts': flagged(
    hostNames,
    null,
    'Names that requests may be addressed to (Host), probes excepted; null or omitted: every name. Without a token to show, it is what keeps out web pages that point a name of their own at the signer (DNS rebinding)',
  ),
  'server.max_request_body_bytes': unflagged(
    integer(1024, BODY_BUDGET_BYTES),
    2_097_152,
    'Larger bodies get 413, but for EXECUTION_PAYLOAD_ENVELOPE, which may have 10 MiB; at most what all bodies in flight may hold',
  ),
  'server.seccomp': unflagged(HARDENING, 'off', 'Syscall filter (Linux); required aborts boot without it'),
  'server.mlock': unflagged(
    HARDENING,
    'best_effort',
    'Locks the memory of secrets and turns core dumps off (Linux); required aborts boot without it; skipped in an enclave',
  ),
  'server.trust_proxy_headers': unflagged(
    boolean,
    false,
    'Take the client IP of the audit log from X-Forwarded-For when the peer is in trusted_proxy_cidrs; never for authorization',
  ),
  'server.trusted_proxy_cidrs': unflagged(safeCidrs, [], 'Source networks of trusted proxies'),
  'server.health_check.poll_interval_seconds': flagged(
    SECONDS,
    30,
    'Background poll of the anti-slashing backend for /healthcheck',
  ),
  'server.health_check.poll_timeout_ms': flagged(integer(1, 600_000), 2000, 'Timeout of one poll, milliseconds'),
  'metrics.listen_address': flagged(listenAddress, '0.0.0.0', 'Address of the metrics listener'),
  'metrics.listen_port': flagged(port, 3000, 'Port of the metrics listener; 0 takes any free port'),
  'metrics.refresh_interval_seconds': flagged(SECONDS, 30, 'Refresh period of polled metrics'),
  network: flagged(
    oneOf('mainnet', 'hoodi', 'sepolia', 'gnosis', 'chiado', 'plataberget', 'ephemery', 'custom'),
    'mainnet',
    'The network whose genesis_validators_root requests must carry; custom and ephemery need custom_network. As a section, network.name',
  ),
  'network.fork_schedule': unflagged(
    object('an object of first epochs, altair to gloas', forkEpochsSchema),
    {},
    'First epochs of forks that this release does not have the epoch of. One that contradicts a known epoch is refused',
  ),
  'custom_network.genesis_validators_root': unflagged(
    hex(32),
    undefined,
    'Genesis validators root of a devnet, or of the present period of ephemery',
  ),
  'custom_network.config_file': unflagged(
    text,
    undefined,
    'The consensus config.yaml of a devnet, in place of the members that it states; an enclave has no files, and takes them one by one',
  ),
  'custom_network.config_name': unflagged(
    configName,
    undefined,
    'What the network calls itself (CONFIG_NAME), for deposit data; custom unless given',
  ),
  'custom_network.preset': unflagged(
    oneOf('mainnet', 'gnosis', 'minimal'),
    undefined,
    'Its preset (PRESET_BASE), which says how many slots an epoch has: 32, 16 or 8. mainnet unless given',
  ),
  'custom_network.slot_duration_ms': unflagged(
    integer(SLOT_DURATION_MS_LIMITS.min, SLOT_DURATION_MS_LIMITS.max),
    undefined,
    'How long a slot is (SLOT_DURATION_MS), milliseconds; 12,000 unless given, and needed with another preset than mainnet',
  ),
  'custom_network.deposit_chain_id': unflagged(
    integer(0, 999_999_999_999_999),
    undefined,
    'Chain id of its deposit contract (DEPOSIT_CHAIN_ID)',
  ),
  'custom_network.fork_versions': unflagged(
    object('an object of fork versions, phase0 to gloas', forkVersionsSchema),
    undefined,
    'Its fork versions; their epochs are in network.fork_schedule. phase0 and capella are needed',
  ),
  'custom_network.genesis_fork_version': unflagged(
    hex(4),
    undefined,
    'Genesis fork version of a devnet, where fork_versions does not say it',
  ),
  'custom_network.capella_fork_version': unflagged(
    hex(4),
    undefined,
    'Capella fork version of a devnet, which voluntary exits are signed with (EIP-7044), where fork_versions does not say it',
  ),
  'custom_network.genesis_time': unflagged(
    integer(0, 253_402_300_799),
    undefined,
    'Genesis time of a devnet, or of the present period of ephemery, seconds since 1970; needed wherever a slot is compared with the clock (a jump of the slashing store)',
  ),
  'key_sources.filesystem.paths': flagged(listOf(text, 'repeated'), [], 'Key directories'),
  'key_sources.filesystem.keystores.path': flagged(
    text,
    undefined,
    'A directory of keystores, NAME.json each, without descriptors; passwords_path or password_file says where their passwords are',
  ),
  'key_sources.filesystem.keystores.passwords_path': flagged(
    text,
    undefined,
    'The directory of the passwords of keystores.path: NAME.txt for NAME.json',
  ),
  'key_sources.filesystem.keystores.password_file': flagged(
    text,
    undefined,
    'One file with the password of every keystore of keystores.path',
  ),
  'key_sources.filesystem.cache': flagged(
    text,
    undefined,
    'A file that keeps the keys of keystores once they are decrypted, encrypted under a key that only the passwords of all of them give: ' +
      'later starts derive one key instead of thousands. Unset: none is kept',
  ),
  'key_sources.filesystem.keystore_load_concurrency': flagged(
    CONCURRENCY,
    128,
    'Parallel keystore decryptions; memory bounds scrypt ones further',
  ),
  'key_sources.filesystem.raw_load_concurrency': flagged(CONCURRENCY, 128, 'Parallel raw key loaders'),
  'key_sources.memory.persist_dir': flagged(
    text,
    undefined,
    'A directory for keystores that are imported into memory, so that a restart has them again; needs persist_secret. Unset: ' +
      'they are gone at the end of the process. One signer for one directory',
  ),
  'key_sources.memory.persist_secret': unflagged(
    secret,
    undefined,
    'Encrypts the passwords of the keystores of persist_dir; without it nobody opens them. At least 16 characters',
  ),
  'key_sources.dynamodb.table': flagged(table, undefined, 'Key table: its name or its ARN'),
  'key_sources.dynamodb.status_filter': flagged(
    listOf(oneOf('active', 'inactive')),
    ['active'],
    'Statuses of keys to load',
  ),
  'key_sources.dynamodb.refresh_interval_seconds': flagged(SECONDS_OR_OFF, 1, 'Reload period; 0 disables'),
  'key_sources.dynamodb.max_concurrent_reads': flagged(CONCURRENCY, 16, 'Parallel reads'),
  'signer_state.backend': flagged(oneOf('dynamodb'), undefined, 'State backend; selects stateful authorization'),
  'signer_state.table': flagged(
    table,
    undefined,
    'State table, by name or ARN: master key, latch, policies and tokens',
    '--signer-state-dynamodb-table',
  ),
  'signer_state.refresh_interval_seconds': flagged(SECONDS_OR_OFF, 1, 'State and auth reload period; 0 disables both'),
  'signer_state.deployment_id': unflagged(
    deploymentId,
    undefined,
    'Names the deployment that the master key belongs to, for its custody keys to tell it from others; the name of the table when unset, also of ' +
      'one that is named by its ARN. ' +
      'It stays the same for the life of the master key, also when the table is restored under another name',
  ),
  'signer_state.require_bound_master_key': unflagged(
    boolean,
    false,
    'Refuse a MASTER_KEY row that names no deployment, as versions before wrote it; set it once the row was written or rotated by this one',
  ),
  'signing.max_concurrent_jobs': flagged(integer(1, 100_000), 2000, 'Concurrent signing operations'),
  'signing.queue_buffer_size': flagged(
    integer(0, 1_000_000),
    4000,
    'Requests that wait for a permit, of both pools together; overflow gets 503',
  ),
  'signing.batch_max_keys': unflagged(
    integer(1, 16_384),
    2048,
    'Keys that one batch (POST /api/v1/eth2/sign) may name; a batch also needs a place in the queue for each',
  ),
  'signing.priority.enabled': unflagged(boolean, false, 'Enable the priority pool'),
  'signing.priority.max_concurrent_jobs': unflagged(
    integer(1, 100_000),
    50,
    'Permits carved out of signing.max_concurrent_jobs for the priority pool',
  ),
  'signing.priority.operations': unflagged(
    listOf(oneOf(...OPERATIONS)),
    [],
    'Operations routed to the priority pool; without any there is none',
  ),
  'signing.builder': unflagged(
    boolean,
    false,
    'Sign EXECUTION_PAYLOAD_BID, which commits the money of a builder; refused with 400 without it',
  ),
  'signing.root_tables': unflagged(
    boolean,
    true,
    'Native core: sign a root that many keys sign with a table of its multiples; false leaves every multiplication to blst',
  ),
  'anti_slashing.backend': flagged(
    oneOf('noop', 'sqlite', 'postgres', 'dynamodb'),
    'sqlite',
    'Slashing protection; noop is no protection and needs --allow-unsafe-noop-anti-slashing',
  ),
  'anti_slashing.path': flagged(
    text,
    './slashing_protection.sqlite',
    'sqlite only: database file',
    '--anti-slashing-sqlite-path',
  ),
  'anti_slashing.url': flagged(
    postgresUrl,
    undefined,
    'postgres only; TLS unless ?sslmode=disable. Secret: prefer the environment, env:VAR_NAME or file:/PATH to the flag',
    '--anti-slashing-postgres-url',
  ),
  'anti_slashing.pool_size': flagged(
    integer(1, 1024),
    64,
    'postgres only: connections at most; no more than a few are ever in use',
    '--anti-slashing-postgres-pool-size',
  ),
  'anti_slashing.force_ipv4': flagged(
    boolean,
    false,
    'postgres only: resolve to IPv4 addresses only',
    '--anti-slashing-postgres-force-ipv4',
  ),
  'anti_slashing.table': flagged(
    table,
    undefined,
    'dynamodb only: the table, by name or ARN. By ARN each record is a request of its own, for PartiQL takes names only',
    '--anti-slashing-dynamodb-table',
  ),
  'anti_slashing.max_concurrent_writes': flagged(
    integer(1, 10_000),
    256,
    'dynamodb only; about 1/8 of signing.max_concurrent_jobs is advised',
    '--anti-slashing-dynamodb-max-concurrent-writes',
  ),
  'anti_slashing.jump_at_boot': unflagged(
    boolean,
    undefined,
    'Refuse everything up to the present at each start, whatever the store says, and everything ahead of the clock. Default: on in an ' +
      'enclave, by the time of its security module; off elsewhere. It costs a validator at most one vote a start',
  ),
  'http.key_manager_api.enabled': flagged(boolean, false, 'Mount /eth/v1/keystores'),
  'http.key_manager_api.max_concurrent_reads': flagged(CONCURRENCY, 50, 'Concurrent GET and DELETE'),
  'http.key_manager_api.max_concurrent_writes': flagged(CONCURRENCY, 10, 'Concurrent POST'),
  'http.key_manager_api.request_timeout_seconds': flagged(
    SECONDS,
    30,
    'Timeout',
    '--http-key-manager-api-timeout-seconds',
  ),
  'http.key_manager_api.max_items_per_request': flagged(ITEMS, 100, 'Items per import or delete'),
  'chamber.keys.list.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent GET /api/v1/chamber/keys'),
  'chamber.keys.generate.enabled': flagged(boolean, false, 'Mount the generate route'),
  'chamber.keys.generate.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.generate.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.generate.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-generate-timeout-seconds',
  ),
  'chamber.keys.generate_keys.enabled': flagged(boolean, false, 'Mount the generate-keys route'),
  'chamber.keys.generate_keys.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.generate_keys.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.generate_keys.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-generate-keys-timeout-seconds',
  ),
  'chamber.keys.deposit_data.enabled': flagged(boolean, false, 'Mount the deposit-data route'),
  'chamber.keys.deposit_data.max_items_per_request': flagged(ITEMS, 100, 'Public keys per request'),
  'chamber.keys.deposit_data.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.deposit_data.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-deposit-data-timeout-seconds',
  ),
  'chamber.keys.deposit_data.allow_recompute': flagged(boolean, false, 'Permit force_recompute_on_conflict=true'),
  'chamber.keys.backup.recipients': flagged(
    listThat('a list of age X25519 public keys', ageRecipientSchema),
    [],
    'Non-empty makes generate and generate_keys back each key up as a mnemonic encrypted to these recipients',
  ),
  'chamber.keys.import.enabled': flagged(boolean, false, 'Mount the import route'),
  'chamber.keys.import.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.import.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.import.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-import-timeout-seconds',
  ),
  'chamber.keys.lifecycle.enabled': flagged(boolean, false, 'Mount PATCH and DELETE /api/v1/chamber/keys'),
  'chamber.keys.lifecycle.max_items_per_request': flagged(ITEMS, 500, 'Keys per batch'),
  'chamber.keys.lifecycle.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.lifecycle.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-lifecycle-timeout-seconds',
  ),
  static_auth: unflagged(
    object('an object of policies, anonymous and tokens', staticAuthSchema),
    NO_STATIC_AUTH,
    'Policies and tokens of stateless authorization; not with signer_state',
  ),
  canary_keys: unflagged(
    publicKeys,
    [],
    'Validator public keys whose every signature is logged as a warning and counted',
  ),
  ceremony: unflagged(
    object(
      'an object of generation, kms_threshold, kms_keys, retired_kms_keys and root_token_recipients',
      ceremonySchema,
    ),
    undefined,
    'Custody ceremony; compiled in on enclave builds, where it is refused here',
  ),
  'tls.mode': flagged(oneOf('disabled', 'file', 'ratls'), 'disabled', 'Second, HTTPS listener next to the HTTP one'),
  'tls.listen_port': flagged(port, 9443, 'TLS port; 0 takes any free port'),
  'tls.listen_address': flagged(listenAddress, '0.0.0.0', 'TLS bind address; ignored in enclave mode'),
  'tls.max_connections': unflagged(integer(1, 100_000), 512, 'Concurrent TLS connections'),
  'tls.file.cert_path': flagged(text, undefined, 'PEM file of the certificate and its chain'),
  'tls.file.key_path': flagged(text, undefined, 'PEM file of the private key'),
  'tls.file.reload_interval_seconds': flagged(SECONDS_OR_OFF, 60, 'How often to look for changed files; 0 disables'),
  'tls.known_clients': unflagged(
    object('a list of objects of name, policies and what the client is known by', knownClientsSchema),
    NO_CLIENTS,
    'Clients that are known by a certificate, and their policies of static_auth; with any, the TLS listener asks for certificates. Mode file only',
  ),
  'tls.client_ca': unflagged(
    text,
    undefined,
    'PEM file of the authorities whose certificates clients in known_clients show, where they are known by subject; read again with the other TLS files',
  ),
  'tls.client_auth': unflagged(
    oneOf('optional', 'required'),
    'optional',
    'required ends a TLS connection without the certificate of a known client before its first request; optional answers it, and a token is good without one',
  ),
  'tls.ratls.cert_validity_seconds': flagged(
    integer(60, 365 * DAY),
    DAY,
    'Validity of the self-signed, attested certificate',
  ),
  'tls.ratls.rotation_interval_seconds': flagged(integer(30, 30 * DAY), 3600, 'Rotation period; below the validity'),
  'tee.platform': unflagged(
    oneOf('off', 'nitro'),
    'off',
    'nitro runs in an AWS Nitro Enclave and needs a tee.nitro section',
  ),
  'tee.nitro.egress.endpoints': unflagged(
    object('a list of endpoints of hostname, loopback, vsock_port and port', egressEndpointsSchema),
    [],
    'Hosts the enclave may reach through its parent',
  ),
  'tee.nitro.table_credentials.ciphertext': unflagged(
    sealedBytes,
    undefined,
    'Credentials for the tables that this image alone opens, in place of the parent’s: a KMS ciphertext in base64 (docs/guides/custody.md)',
  ),
  'tee.nitro.table_credentials.key_arn': unflagged(
    keyArn,
    undefined,
    'The custody key that the ciphertext was made with; all of its replicas are tried',
  ),
  parent_proxy: unflagged(
    object('an object as `strongroom parent-proxy` takes it', parentProxySchema),
    undefined,
    'What `strongroom parent-proxy` listens on, read from the same file; the server checks it and acts on none of it',
  ),
  'opentelemetry.enabled': flagged(boolean, false, 'OTLP tracing export'),
  'opentelemetry.endpoint': flagged(httpUrl, 'http://localhost:4317', 'OTLP gRPC URL of the collector'),
  'opentelemetry.service_name': flagged(text, 'strongroom', 'Service name on traces'),
  'logging.level': flagged(
    logFilter,
    'info',
    'Log level, or a filter of levels by module. Audit lines have the level `audit=info` until the filter names another, or is `off`',
  ),
  'logging.format': flagged(oneOf('text', 'json'), 'text', 'Log format'),
  'logging.color': flagged(
    boolean,
    undefined,
    'ANSI colour; when unset, on a terminal unless NO_COLOR or TERM=dumb is set, and wherever FORCE_COLOR is',
  ),
} as const satisfies Record<string, Option>;

export type OptionPath = keyof typeof OPTIONS;
/** A prefix of option paths: `signer_state`, `chamber.keys`. */
export type SectionPath = SectionOf<OptionPath>;
/**
 * The parsed configuration, deeply frozen; every option is present under its own name, undefined when it has no value.
 */
export type Config = Nested<{ [Path in OptionPath]: ValueOf<(typeof OPTIONS)[Path]> }>;

export const OPTION_PATHS = Object.keys(OPTIONS) as readonly OptionPath[];
export const SECTION_PATHS: ReadonlySet<string> = new Set(OPTION_PATHS.flatMap(sectionsOf));

/**
 * An option that is a section too (`network`) has its own value in the section, in the file and in the parsed
 * configuration.
 */
export const OWN_MEMBER = 'name';

/**
 * The option at a path as it is written: `network` may be written as `network.name`, beside `network.fork_schedule`.
 */
export function optionWrittenAt(path: string): OptionPath | undefined {
  if (isOptionPath(path)) return path;
  const section = path.endsWith(`.${OWN_MEMBER}`) ? path.slice(0, -OWN_MEMBER.length - 1) : '';
  return isOptionPath(section) && SECTION_PATHS.has(section) ? section : undefined;
}

export function optionAt(path: OptionPath): Option {
  return OPTIONS[path];
}

export function isOptionPath(path: string): path is OptionPath {
  return Object.hasOwn(OPTIONS, path);
}

export function flagOf(path: OptionPath): string | undefined {
  const { flag } = optionAt(path);
  if (flag === 'none') return undefined;
  return flag === 'regular' ? `--${path.replaceAll(/[._]/g, '-')}` : flag;
}

export function variableOf(path: OptionPath): string {
  return `SVC_${path.toUpperCase().replaceAll('.', '__')}`;
}

type Head<Path> = Path extends `${infer First}.${string}` ? First : Path;
type SectionOf<Path> = Path extends `${infer First}.${infer Rest}` ? First | `${First}.${SectionOf<Rest>}` : never;
type Nested<Flat> = {
  readonly [First in Head<keyof Flat> & string]: First extends keyof Flat
    ? keyof Inside<Flat, First> extends never
      ? Flat[First]
      : { readonly [Name in typeof OWN_MEMBER]: Flat[First] } & Nested<Inside<Flat, First>>
    : Nested<Inside<Flat, First>>;
};
type Inside<Flat, First extends string> = {
  [Path in keyof Flat as Path extends `${First}.${infer Rest}` ? Rest : never]: Flat[Path];
};

function sectionsOf(path: OptionPath): string[] {
  const names = path.split('.').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('.'));
}
