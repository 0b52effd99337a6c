// Options of the signing path and of the signer's state: permits, batches, the priority pool; the state table, which
// selects stateful authorization.

import { OPERATIONS } from '../../api/operations.ts';
import { flagged, type Option, unflagged } from '../option.ts';
import { boolean, deploymentId, integer, listOf, oneOf, table } from '../values/values.ts';
import { SECONDS_OR_OFF } from './ranges.ts';

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
} as const satisfies Record<string, Option>;
