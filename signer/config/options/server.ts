// Options of the signer's HTTP server. Hosts, origins and proxies are believed only where these rows say so.

import { ceremonySchema } from '../../../ceremony/definition.ts';
import { BODY_BUDGET_BYTES } from '../../api/primitives.ts';
import { flagged, type Option, unflagged } from '../option.ts';
import { type KnownClient, knownClientsSchema } from '../values/known-clients.ts';
import { type StaticAuth, staticAuthSchema } from '../values/static-auth.ts';
import {
  booleanValue,
  corsOrigins,
  DAY,
  hostNames,
  httpUrl,
  integer,
  listenAddress,
  logFilter,
  object,
  oneOf,
  port,
  publicKeys,
  SECONDS,
  SECONDS_OR_OFF,
  safeCidrs,
  text,
} from '../values/values.ts';

const HARDENING = oneOf('off', 'best_effort', 'required');

export const SERVER_OPTIONS = {
  'server.listen_address': flagged(listenAddress, '0.0.0.0', 'HTTP bind address; localhost is 127.0.0.1'),
  'server.listen_port': flagged(port, 9000, 'HTTP port; 0 takes any free port'),
  'server.request_timeout_seconds': flagged(integer(1, 3600), 30, 'Per-request timeout of signing handlers'),
  'server.graceful_shutdown_timeout_seconds': flagged(
    integer(0, 3600),
    25,
    'Grace time of ending; requests are cut up to 2 s before it is over, so that the slashing store closes in order',
  ),
  'server.cors_allowed_origins': flagged(
    corsOrigins,
    null,
    'Origins of web pages that may use the API; null: the signer’s own host alone, and no CORS; ["*"] allows all',
  ),
  'server.allowed_hosts': flagged(
    hostNames,
    null,
    'Names that requests may be addressed to (Host), probes excepted; null: every name. It keeps out web pages that point a name of their own at the signer (DNS rebinding)',
  ),
  'server.max_request_body_bytes': unflagged(
    integer(1024, BODY_BUDGET_BYTES),
    2_097_152,
    'Larger bodies get 413; EXECUTION_PAYLOAD_ENVELOPE may have 10 MiB',
  ),
  'server.seccomp': unflagged(HARDENING, 'off', 'Syscall filter (Linux); required aborts boot without it'),
  'server.mlock': unflagged(
    HARDENING,
    'best_effort',
    'Locks the memory of secrets and turns core dumps off (Linux); required aborts boot without it; skipped in an enclave',
  ),
  'server.trust_proxy_headers': unflagged(
    booleanValue,
    false,
    'Take client_ip of audit lines from X-Forwarded-For when the peer is in trusted_proxy_cidrs; never for authorization',
  ),
  'server.trusted_proxy_cidrs': unflagged(safeCidrs, [], 'Source networks of trusted proxies'),
  'server.health_check.poll_interval_seconds': flagged(
    SECONDS,
    30,
    'Background poll of the anti-slashing backend for /healthcheck',
  ),
  'server.health_check.poll_timeout_ms': flagged(integer(1, 600_000), 2000, 'Timeout of one poll, milliseconds'),
  'server.web3signer_names': unflagged(
    booleanValue,
    false,
    'Metrics and checks of /healthcheck also have the names that Web3Signer’s dashboard and alerts ask for',
  ),
  'metrics.listen_address': flagged(listenAddress, '0.0.0.0', 'Address of the metrics listener'),
  'metrics.listen_port': flagged(port, 3000, 'Port of the metrics listener; 0 takes any free port'),
  'metrics.refresh_interval_seconds': flagged(SECONDS, 30, 'Refresh period of polled metrics'),
} as const satisfies Record<string, Option>;

// Options of what the signer tells of itself: traces and the log.

export const TELEMETRY_OPTIONS = {
  'opentelemetry.enabled': flagged(booleanValue, false, 'OTLP tracing export'),
  'opentelemetry.endpoint': flagged(httpUrl, 'http://localhost:4317', 'OTLP gRPC URL of the collector'),
  'opentelemetry.service_name': flagged(text, 'strongroom', 'Service name on traces'),
  'logging.level': flagged(
    logFilter,
    'info',
    'Log level, or a filter of levels by module. Audit lines have the level `audit=info` unless the filter names another or is `off`',
  ),
  'logging.format': flagged(oneOf('text', 'json'), 'text', 'Log format'),
  'logging.color': flagged(
    booleanValue,
    undefined,
    'ANSI colour; unset: as in every program (docs/specification/operating.md#colour)',
  ),
  'audit.required': unflagged(
    booleanValue,
    false,
    'Let no signature leave before its audit line is with the system, and refuse (503 audit_unavailable) while the log does not take lines (docs/specification/operating.md#audit-required); otherwise the signer signs on, and is degraded',
  ),
} as const satisfies Record<string, Option>;

const NO_CLIENTS: KnownClient[] = [];

export const TLS_OPTIONS = {
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
    'PEM file of the authorities of clients that are known by subject; read again with the other TLS files',
  ),
  'tls.client_auth': unflagged(
    oneOf('optional', 'required'),
    'optional',
    'required ends a TLS connection without the certificate of a known client before its first request; optional answers it',
  ),
  'tls.ratls.cert_validity_seconds': flagged(
    integer(60, 365 * DAY),
    DAY,
    'Validity of the self-signed, attested certificate',
  ),
  'tls.ratls.rotation_interval_seconds': flagged(integer(30, 30 * DAY), 3600, 'Rotation period; below the validity'),
} as const satisfies Record<string, Option>;

// Options that stand in no section: static authorization, canary keys, the ceremony.

const NO_STATIC_AUTH: StaticAuth = { policies: [], anonymous: { policies: [] }, tokens: [] };

export const ACCESS_OPTIONS = {
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
} as const satisfies Record<string, Option>;
