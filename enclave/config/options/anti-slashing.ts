// Options of slashing protection: which store, how it is reached, and the jump at boot. Without any, sqlite protects;
// no protection needs a flag of its own besides.

import { flagged, type Option, unflagged } from '../option.ts';
import { boolean, integer, oneOf, postgresUrl, table, text } from '../values/values.ts';

export const ANTI_SLASHING_OPTIONS = {
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
} as const satisfies Record<string, Option>;
