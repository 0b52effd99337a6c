// Reads `anti_slashing.url`. Without `sslmode` it is `verify-full`: the certificate must chain to a trusted root and
// name the host. As in libpq, `require` encrypts without proof of who answers, and with `sslrootcert` it means
// `verify-ca`. Modes that fall back to plain text, and any parameter not listed here, are refused. Problems are
// constant text, so the password in the URL cannot reach a log.

import type { ConnectionOptions } from 'node:tls';

export interface PostgresAddress {
  readonly kind: 'address';
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly tls: TlsMode;
  /** PEM file of the roots that are trusted in place of Node's. */
  readonly rootCertificateFile: string | undefined;
}

type TlsMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

type PostgresUrlReading = PostgresAddress | { readonly kind: 'invalid'; readonly problem: string };

const TLS_MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'] satisfies TlsMode[];
const PARAMETERS: readonly string[] = ['sslmode', 'sslrootcert'];
const DEFAULT_PORT = 5432;

export function parsePostgresUrl(text: string): PostgresUrlReading {
  if (!URL.canParse(text)) return invalid('it is not a URL');
  const url = new URL(text);
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') return invalid('its scheme is not postgres://');
  if (url.hostname === '' || url.hostname.includes('%')) return invalid('it names no host, or not a plain one');
  if (url.hash !== '') return invalid('it has a # in it; write %23 for one in the password');

  const user = decode(url.username);
  const password = decode(url.password);
  const database = decode(url.pathname.slice(1));
  if (user === undefined || password === undefined || database === undefined) return invalid('a % escape is malformed');
  if (user === '') return invalid('it names no user');
  if (database === '' || database.includes('/')) return invalid('its path is not the name of one database');

  const names = [...url.searchParams.keys()];
  if (new Set(names).size !== names.length) return invalid('a parameter is repeated');
  if (names.some((name) => !PARAMETERS.includes(name))) return invalid(`parameters are ${PARAMETERS.join(' and ')}`);
  const tls = url.searchParams.get('sslmode') ?? 'verify-full';
  if (!isTlsMode(tls)) return invalid(`sslmode is one of ${TLS_MODES.join(', ')}`);
  const rootCertificateFile = url.searchParams.get('sslrootcert') ?? undefined;
  if (rootCertificateFile === '') return invalid('sslrootcert is empty');
  if (rootCertificateFile !== undefined && tls === 'disable') return invalid('sslrootcert contradicts sslmode=disable');

  return {
    kind: 'address',
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    user,
    password,
    database,
    tls: tls === 'require' && rootCertificateFile !== undefined ? 'verify-ca' : tls,
    rootCertificateFile,
  };
}

/** Given explicitly, because without it `pg` connects in plain text. */
export function tlsOptions(mode: TlsMode, rootCertificates: readonly string[] | undefined): ConnectionOptions | false {
  const roots = rootCertificates === undefined ? {} : { ca: [...rootCertificates] };
  switch (mode) {
    case 'disable':
      return false;
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { ...roots, rejectUnauthorized: true, checkServerIdentity: () => undefined };
    case 'verify-full':
      return { ...roots, rejectUnauthorized: true };
  }
}

function isTlsMode(text: string): text is TlsMode {
  return TLS_MODES.includes(text);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function invalid(problem: string): PostgresUrlReading {
  return { kind: 'invalid', problem };
}

/** Larger batches cost latency, more of them contend for the disk. */
export const BATCHES_IN_FLIGHT = 2;
/** A health check, a step of pruning, a look at the record. */
const BESIDE_BATCHES = 5;
/** Imports, exports and migrations have connections of their own. */
export const USED_POOL_CONNECTIONS = BATCHES_IN_FLIGHT + BESIDE_BATCHES;
