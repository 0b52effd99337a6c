// The table of metrics (specification/operating.md#metrics).

import { COMMIT } from '../api/commit.ts';
import { VERSION } from '../api/version.ts';
import {
  authReason,
  callOutcome,
  clientFault,
  closed,
  counter,
  dynamodbCall,
  egressEndpoint,
  gauge,
  histogram,
  jumpCause,
  keySource,
  kmsCall,
  type MetricEntry,
  nsmCall,
  operation,
  pool,
  route,
  signingOutcome,
  slashingReason,
} from './entry.ts';

/** With at most so many series they start at zero, so that rates have a beginning. */
export const MAX_INITIAL_SERIES = 128;

const SIGNING_BUCKETS_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const COMMIT_BUCKETS_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const CALL_BUCKETS_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export const METRICS = {
  buildInfo: gauge(
    'svc_build_info',
    'Always 1; its labels say which program this is. The commit is `unknown` in a checkout and in an enclave image.',
    { version: closed(VERSION), commit: closed(COMMIT) },
  ),
  signingRequests: counter(
    'svc_signing_requests_total',
    'Signing requests that ended, by operation and by `signed` or the reason of the error body. Each key of a batch counts as one.',
    { operation, outcome: signingOutcome },
  ),
  signingSeconds: histogram(
    'svc_signing_duration_seconds',
    'Time from the headers of a signing request to the end of its answer, whatever the outcome.',
    { operation },
    SIGNING_BUCKETS_SECONDS,
  ),
  healedRequests: counter(
    'svc_healed_requests_total',
    'Messages that were signed with the fork of the schedule although the client stated another, by what was wrong; any increase is a fault of a client.',
    { client_fault: clientFault },
  ),
  signingQueueDepth: gauge('svc_signing_queue_depth', 'Signing requests that wait for a permit.', { pool }),
  requestsWaiting: gauge(
    'svc_requests_waiting',
    'Requests that wait after their headers for a turn of their caller; at most 4,096 of one.',
  ),
  signingInFlight: gauge('svc_signing_in_flight', 'Signing requests that hold a permit.', { pool }),
  equivocationClaims: gauge(
    'svc_equivocation_claims',
    'Payload attestations, envelopes and bids of the last epochs that are remembered, so that no other content is signed in their place; at most 131,072.',
  ),
  blsQueueDepth: gauge('svc_bls_queue_depth', 'Signatures that wait in the signing core.'),
  blsInFlight: gauge('svc_bls_in_flight', 'Signatures that the signing core is making.'),
  canarySignings: counter(
    'svc_canary_signing_total',
    'Signatures made with a configured canary key. The log names the key; any increase is an alarm.',
  ),
  slashingRefusals: counter(
    'svc_slashing_refusals_total',
    'Messages that slashing protection did not call safe: slashable (412), or a record that cannot be trusted (503).',
    { reason: slashingReason },
  ),
  slashingBatchMessages: histogram(
    'svc_slashing_batch_messages',
    'Messages checked and recorded in one commit of the slashing database.',
    {},
    BATCH_BUCKETS,
  ),
  slashingBatchSeconds: histogram(
    'svc_slashing_batch_duration_seconds',
    'Time of one commit of the slashing database.',
    { outcome: closed('committed', 'failed') },
    COMMIT_BUCKETS_SECONDS,
  ),
  slashingBackendUp: gauge(
    'svc_slashing_backend_up',
    '1 while the slashing database answers, else 0; 0 on a replica that started sealed, too, which does not open it.',
  ),
  slashingFloorAhead: gauge(
    'svc_slashing_floor_ahead_seconds',
    'How long a floor of the future keeps everything from being signed ' +
      '(docs/runbooks/certificates-and-clocks.md#floor); 0: there is none.',
  ),
  slashingKeysAhead: gauge(
    'svc_slashing_keys_ahead',
    'Keys with records ahead of the clock, which sign nothing of that kind until then; looked for every 10 minutes. ' +
      '`strongroom slashing status` names them.',
    { kind: closed('block', 'attestation') },
  ),
  slashingJumps: counter(
    'svc_slashing_jumps_total',
    'Times this replica raised what may be signed to the present, by cause (docs/runbooks/slashing-database.md#jumped). ' +
      'Any but `boot` is an alarm.',
    { cause: jumpCause },
  ),
  authRejections: counter(
    'svc_auth_rejections_total',
    'Requests refused for their credentials (401, 403) or by policy (`denied`).',
    { reason: authReason },
  ),
  authRowsRejected: counter(
    'svc_auth_rows_rejected_total',
    'Policy and token rows whose HMAC did not verify; each counts as missing.',
    { row: closed('policy', 'token') },
  ),
  authHeadsRejected: counter(
    'svc_auth_heads_rejected_total',
    'Looks at the state table that found its auth revision gone, altered or rolled back. Any increase is an alarm.',
    { problem: closed('missing', 'altered', 'rolled_back') },
  ),
  keys: gauge(
    'svc_keys',
    'Validator keys known, by source and status. Those of the key table are counted by the status of their row, whether it is loaded or not.',
    {
      source: keySource,
      status: closed('active', 'inactive'),
    },
  ),
  unlockedKeys: gauge(
    'svc_unlocked_keys',
    'Loaded validator keys whose memory is not locked and left out of core dumps; with server.mlock off, and in an enclave, that is all of them.',
  ),
  keyLoadSeconds: gauge('svc_key_load_duration_seconds', 'Time that the last complete load of a key source took.', {
    source: keySource,
  }),
  keyLoadFailures: gauge('svc_key_load_failures', 'Keys that the last load of a source could not load.', {
    source: keySource,
  }),
  keyTableReadFailures: counter(
    'svc_key_table_read_failures_total',
    'Looks at the key table that failed; the loaded keys stay, and the next look tries again.',
  ),
  chamberUnsealed: gauge('svc_chamber_unsealed', '1 while the chamber is unsealed, 0 while it is sealed.'),
  custodyGeneration: gauge(
    'svc_custody_generation',
    'Generation of the ceremony that this replica started with; 0 without a signer state.',
  ),
  stateAgeSeconds: gauge('svc_state_age_seconds', 'Age of the last successful read of the signer-state table.'),
  kmsCalls: counter('svc_kms_calls_total', 'Calls to KMS, retries included in one call.', {
    operation: kmsCall,
    outcome: callOutcome,
  }),
  kmsCallSeconds: histogram(
    'svc_kms_call_duration_seconds',
    'Time of one call to KMS.',
    { operation: kmsCall },
    CALL_BUCKETS_SECONDS,
  ),
  dynamodbCalls: counter('svc_dynamodb_calls_total', 'Calls to DynamoDB, retries included in one call.', {
    operation: dynamodbCall,
    outcome: callOutcome,
  }),
  dynamodbCallSeconds: histogram(
    'svc_dynamodb_call_duration_seconds',
    'Time of one call to DynamoDB.',
    { operation: dynamodbCall },
    CALL_BUCKETS_SECONDS,
  ),
  nsmCalls: counter(
    'svc_nsm_calls_total',
    'Calls of the Nitro Secure Module; `refused` is its own word. In an enclave only.',
    {
      operation: nsmCall,
      outcome: closed('ok', 'refused', 'failed'),
    },
  ),
  egressConnections: counter(
    'svc_egress_connections_total',
    'Connections to a declared egress endpoint, by its place in `tee.nitro.egress.endpoints`, from 0. In an enclave only.',
    { endpoint: egressEndpoint, outcome: closed('connected', 'unreachable', 'over_limit') },
  ),
  certificateExpiry: gauge(
    'svc_tls_certificate_expiry_timestamp_seconds',
    'Unix time at which the certificate of the TLS listener expires; `ratls` is the attested one.',
    { mode: closed('file', 'ratls') },
  ),
  ratlsRotations: counter(
    'svc_ratls_rotations_total',
    'Rotations of the attested certificate; while they fail, the one in force is served until its evidence ends.',
    { outcome: closed('ok', 'failed') },
  ),
  attestationRequests: counter(
    'svc_attestation_requests_total',
    'Requests for a fresh attestation document, which need no credential. `overloaded` found no place or no turn in time; ' +
      '`connection_limit` asked once too often over one connection. In an enclave only.',
    { outcome: closed('ok', 'overloaded', 'connection_limit', 'client_closed', 'failed') },
  ),
  attestationWaiting: gauge(
    'svc_attestation_requests_waiting',
    'Requests that wait for their turn at the Nitro Secure Module. In an enclave only.',
  ),
  nsmClockOffsetSeconds: gauge(
    'svc_nsm_clock_offset_seconds',
    'By how much the Nitro Secure Module was ahead of the own clock when the attested certificate was made; negative: behind. Clients ' +
      'take 300. In an enclave only.',
  ),
  receiptDecisions: counter(
    'svc_receipts_decisions_total',
    'Decisions on signing requests, by whether the log of receipts has them (`logged`) or lacked the room (`lost`). Heads count the lost ones.',
    { outcome: closed('logged', 'lost') },
  ),
  receiptHeads: counter(
    'svc_receipts_heads_total',
    'Heads of the log of receipts that were due, by whether the storage took them. One that it did not take is tried again.',
    { outcome: closed('kept', 'failed') },
  ),
  receiptHeadAgeSeconds: gauge(
    'svc_receipts_head_age_seconds',
    'How long ago the latest kept head of the log of receipts was kept; infinite before the first. 0 without `receipts`.',
  ),
  receiptEntriesInMemory: gauge(
    'svc_receipts_entries_in_memory',
    'Entries of the log of receipts that the storage does not have yet; at most 131,072.',
  ),
  connectionsRefused: counter(
    'svc_connections_refused_total',
    'Connections that were cut before their first admitted request: when every place is taken, the oldest one of the ' +
      'address that has most of them (`displaced`), or the new one, when all others are admitted (`limit`). The other ' +
      'reasons are of the RA-TLS listener.',
    { reason: closed('limit', 'displaced', 'proxy_header', 'no_evidence', 'handshake') },
  ),
  httpRequests: counter('svc_http_requests_total', 'HTTP requests that ended, by mounted route and status class.', {
    route,
    status: closed('1xx', '2xx', '3xx', '4xx', '5xx'),
  }),
  routeFaults: counter(
    'svc_route_faults_total',
    'Faults of the signer itself while it served a request: `thrown` by a route and answered with 500, or `escaped`, ' +
      'a failure that nothing waited for any more. The log has each with its request id; any increase is a bug.',
    { kind: closed('thrown', 'escaped') },
  ),
  httpConnections: gauge('svc_http_connections', 'Open connections of a listener.', {
    listener: closed('plain', 'tls', 'metrics'),
  }),
  logLinesDropped: counter(
    'svc_log_lines_dropped_total',
    'Log lines lost: the log could not be written (its disk is full, its reader is gone), or its reader took too few.',
  ),
  eventLoopLagSeconds: gauge(
    'svc_event_loop_lag_seconds',
    'How late the main thread ran its timers since the metrics were last read.',
    { statistic: closed('p50', 'p99', 'max') },
  ),
  processCpuSeconds: counter('svc_process_cpu_seconds_total', 'CPU time of the process, all threads, user and system.'),
  processResidentBytes: gauge('svc_process_resident_memory_bytes', 'Resident memory of the process.'),
  processHeapBytes: gauge('svc_process_heap_used_bytes', 'JavaScript heap in use on the main thread.'),
  processExternalBytes: gauge('svc_process_external_memory_bytes', 'Memory of buffers outside the JavaScript heap.'),
  processFileDescriptors: gauge('svc_process_open_file_descriptors', 'Open file descriptors; on Linux only.'),
  systemCallsFiltered: gauge(
    'svc_system_calls_filtered',
    '1 when the filter that `server.seccomp` asks for is in force, else 0.',
  ),
  processStartTime: gauge('svc_process_start_time_seconds', 'Unix time at which the process started.'),
} as const satisfies Readonly<Record<string, MetricEntry>>;
