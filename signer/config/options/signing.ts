// Options of the signing path and of the signer's state, whose table selects stateful authorization.

import { MAX_RETENTION_DAYS } from '../../../common/receipts/head.ts';
import { OPERATIONS } from '../../api/operations.ts';
import { MAX_CLOCK_TOLERANCE_SECONDS } from '../../slashing/future.ts';
import { USED_POOL_CONNECTIONS } from '../../slashing/postgres/connection/address.ts';
import { flagged, type Option, unflagged } from '../option.ts';
import {
  booleanValue,
  deploymentId,
  integer,
  listOf,
  oneOf,
  postgresUrl,
  SECONDS_OR_OFF,
  table,
  text,
} from '../values/values.ts';

export const SIGNING_OPTIONS = {
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
    'Names the deployment that the master key belongs to (docs/guides/custody.md); unset: the name of the table. It stays the same for the life of the master key',
  ),
  'signing.max_concurrent_jobs': flagged(integer(1, 100_000), 2000, 'Concurrent signing operations'),
  'signing.queue_buffer_size': flagged(
    integer(0, 1_000_000),
    4000,
    'Requests that wait for a permit, of both pools together; overflow gets 503',
  ),
  'signing.priority.enabled': unflagged(booleanValue, false, 'Enable the priority pool'),
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
  'signing.builder': unflagged(booleanValue, false, 'Sign EXECUTION_PAYLOAD_BID, which commits the money of a builder'),
  'signing.root_tables': unflagged(
    booleanValue,
    true,
    'Native core: sign a root that many keys sign with a table of its multiples; false leaves every multiplication to blst',
  ),
} as const satisfies Record<string, Option>;

// Options of slashing protection. Without any, sqlite protects; no protection needs a flag of its own besides.

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
    USED_POOL_CONNECTIONS,
    'postgres only: connections at most. More are never in use: batches grow with the load, instead of their number',
    '--anti-slashing-postgres-pool-size',
  ),
  'anti_slashing.force_ipv4': flagged(
    booleanValue,
    false,
    'postgres only: resolve to IPv4 addresses only',
    '--anti-slashing-postgres-force-ipv4',
  ),
  'anti_slashing.table': flagged(
    table,
    undefined,
    'dynamodb only: the table, by name or ARN (docs/guides/custody.md)',
    '--anti-slashing-dynamodb-table',
  ),
  'anti_slashing.max_concurrent_writes': flagged(
    integer(1, 10_000),
    256,
    'dynamodb only; about 1/8 of signing.max_concurrent_jobs is advised',
    '--anti-slashing-dynamodb-max-concurrent-writes',
  ),
  'anti_slashing.clock_tolerance_seconds': unflagged(
    integer(1, MAX_CLOCK_TOLERANCE_SECONDS),
    60,
    'Neither sign nor import what lies further ahead of the clock (503 ahead_of_clock); with signer_state and in an enclave it is 12. More suits a clock that is slow, and the clock should be set instead',
  ),
  'anti_slashing.jump_after_unclean_end': unflagged(
    booleanValue,
    true,
    'sqlite without signer_state: jump when the file is not the one that was closed in order last: after kill -9, a crash, a copy put back, chown of the file. It costs a validator one vote, two at most. Off, an older file that was put back can get a validator slashed',
  ),
  'anti_slashing.jump_at_boot': unflagged(
    booleanValue,
    undefined,
    'Refuse everything up to the present at each start, whatever the store says. On by default in an enclave, off elsewhere. It costs a validator one vote a start, two at most',
  ),
  'anti_slashing.unsafe_unconfirmed_clock': unflagged(
    booleanValue,
    false,
    'For machines without a time service: raise a store that is in doubt to the present of a clock that nothing confirms. A clock that is behind lets a slashable message be signed then; one that is ahead stops signing until its time comes',
  ),
} as const satisfies Record<string, Option>;

// Options of the log of receipts: without a storage there is none.

export const RECEIPT_OPTIONS = {
  'receipts.storage': unflagged(
    oneOf('folder', 'state_table'),
    undefined,
    'Keep a log of all decisions on signing requests, there (docs/guides/receipts.md); an enclave has state_table only. Unset: no log',
  ),
  'receipts.path': unflagged(text, undefined, 'storage folder only: the folder; it is made when it is not there'),
  'receipts.interval_seconds': unflagged(
    integer(1, 3600),
    60,
    'Time between heads: decisions since the last one are not provable after a crash',
  ),
  'receipts.retention_days': unflagged(
    integer(1, MAX_RETENTION_DAYS),
    undefined,
    'Remove entries of all logs there after so many days, and keep their hashes: a verifier finds removed_by_retention. Unset: nothing is removed',
  ),
  'receipts.required': unflagged(
    booleanValue,
    false,
    'Refuse to sign (503 receipts_unavailable) while the log cannot be kept; otherwise the signer signs on, and is degraded',
  ),
} as const satisfies Record<string, Option>;
