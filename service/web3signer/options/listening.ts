// Options of Web3Signer that say where it listens, whom it answers and what it writes of it.

import { accepted, honoured, refused, type Web3SignerOption } from '../option.ts';

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

export const LISTENING: readonly Web3SignerOption[] = [
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
    accepted('is not taken over: strongroom has limits of its own for connections'),
  ),
  option(
    'vertx-worker-pool-size',
    'number',
    accepted('does nothing: there is no Vert.x; signing.max_concurrent_jobs bounds the work'),
  ),
  option(
    'access-logs-enabled',
    'boolean',
    accepted('does nothing: one audit line a request is logged in any case (logging.level audit=off)'),
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
    accepted(
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
      accepted('does nothing: all metrics are served (docs/reference/metrics.md)'),
      true,
    ),
    names: ['metrics-category', 'metrics-categories'],
  },
  option(
    'metrics-push-enabled',
    'boolean',
    refused('asks to push metrics, which strongroom does not', 'have Prometheus scrape --metrics-port', ['false']),
  ),
  ...['host', 'port', 'interval', 'prometheus-job'].map((part) =>
    option(`metrics-push-${part}`, 'text', accepted('does nothing: metrics are scraped, not pushed')),
  ),
  option('tls-keystore-file', 'text', refused(TLS, TLS_REMEDY)),
  option('tls-keystore-password-file', 'text', refused(TLS, TLS_REMEDY)),
  option(
    'tls-known-clients-file',
    'text',
    honoured(
      '`tls.known_clients` with `tls.client_auth: required`, and nobody is let in without; needs `tls.mode: file` with ' +
        'PEM files, for instance from `SVC_TLS__MODE`',
    ),
  ),
  option('tls-allow-ca-clients', 'boolean', refused(ANY_AUTHORITY, KNOWN_BY_NAME, ['false'])),
  option(
    'tls-allow-any-client',
    'boolean',
    accepted(
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
