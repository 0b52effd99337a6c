// What a metric of the catalogue says of itself. Labels are bounded by construction: each names all of its values, or
// folds what it does not name into `unknown`.

import { MAX_EGRESS_ENDPOINTS } from '../api/egress.ts';
import {
  DOUBT_CAUSES,
  ERROR_REASONS,
  type ErrorReason,
  SLASHING_KEY_FAULTS,
  SLASHING_REFUSALS,
} from '../api/errors.ts';
import { CLIENT_FAULTS } from '../api/forks.ts';
import { OPERATIONS } from '../api/operations.ts';

export interface ClosedLabel<Value extends string = string> {
  readonly values: readonly Value[];
  readonly foldsOthers: false;
}

interface FoldedLabel {
  readonly values: readonly string[];
  readonly foldsOthers: true;
}

export type Labels = Readonly<Record<string, ClosedLabel | FoldedLabel>>;

export interface MetricEntry<Type extends string = 'counter' | 'gauge' | 'histogram', L extends Labels = Labels> {
  readonly type: Type;
  readonly name: string;
  readonly help: string;
  readonly labels: L;
  /** Ascending, in the unit of its name. */
  readonly buckets: readonly number[];
}

type NoLabels = Readonly<Record<never, never>>;

export const UNKNOWN_LABEL = 'unknown';

export function closed<const Value extends string>(...values: Value[]): ClosedLabel<Value> {
  return { values, foldsOthers: false };
}

export function folded(...values: string[]): FoldedLabel {
  return { values: [...values, UNKNOWN_LABEL], foldsOthers: true };
}

export function counter<L extends Labels = NoLabels>(
  name: string,
  help: string,
  labels = {} as L,
): MetricEntry<'counter', NoInfer<L>> {
  return { type: 'counter', name, help, labels, buckets: [] };
}

export function gauge<L extends Labels = NoLabels>(
  name: string,
  help: string,
  labels = {} as L,
): MetricEntry<'gauge', NoInfer<L>> {
  return { type: 'gauge', name, help, labels, buckets: [] };
}

export function histogram<L extends Labels>(
  name: string,
  help: string,
  labels: L,
  buckets: readonly number[],
): MetricEntry<'histogram', L> {
  return { type: 'histogram', name, help, labels, buckets };
}

const REASONS = Object.keys(ERROR_REASONS) as ErrorReason[];

// No public key, address, accessor or name of a policy is ever a label.

export const operation = folded(...OPERATIONS);
export const signingOutcome = closed('signed', ...REASONS);
export const clientFault = closed(...CLIENT_FAULTS);
export const pool = closed('normal', 'priority');
export const callOutcome = closed(
  'ok',
  'condition_failed',
  'conflict',
  'throttled',
  'not_found',
  'denied',
  'unreachable',
  'failed',
);
export const keySource = closed('filesystem', 'dynamodb', 'memory');
export const slashingReason = closed(...SLASHING_REFUSALS, ...SLASHING_KEY_FAULTS);
export const jumpCause = closed(...DOUBT_CAUSES);
export const authReason = folded(...REASONS.filter((reason) => [401, 403].includes(ERROR_REASONS[reason].status)));
export const dynamodbCall = folded(
  'GetItem',
  'BatchGetItem',
  'Query',
  'Scan',
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'BatchWriteItem',
  'BatchExecuteStatement',
  'TransactGetItems',
  'TransactWriteItems',
  'DescribeTable',
);
export const kmsCall = folded('Encrypt', 'Decrypt', 'GenerateRandom', 'DescribeKey');
export const nsmCall = closed('DescribeNSM', 'DescribePCR', 'ExtendPCR', 'LockPCR', 'GetRandom', 'Attestation');
export const egressEndpoint = closed(...Array.from({ length: MAX_EGRESS_ENDPOINTS }, (_, index) => String(index)));
export const route = folded(
  '/upcheck',
  '/healthcheck',
  '/api/openapi.json',
  '/api/v1/attestation',
  '/api/v1/eth2/sign/:identifier',
  '/api/v1/eth2/sign',
  '/api/v1/eth2/publicKeys',
  '/api/v1/eth2/highWatermark',
  '/api/v1/eth2/distributed/accounts',
  '/api/v1/eth2/distributed/accounts/:identifier',
  '/api/v1/eth2/distributed/sign/:identifier',
  '/api/v1/eth2/distributed/sign',
  '/api/v1/auth/policies',
  '/api/v1/auth/policies/:name',
  '/api/v1/auth/tokens',
  '/api/v1/auth/tokens/:accessor',
  '/api/v1/auth/tokens/lookup-self',
  '/api/v1/auth/tokens/renew-self',
  '/api/v1/receipts/head',
  '/api/v1/receipts/boots',
  '/api/v1/receipts/tiles/:boot/*',
  '/api/v1/chamber/seal',
  '/api/v1/chamber/status',
  '/api/v1/chamber/keys',
  '/api/v1/chamber/keys/generate',
  '/api/v1/chamber/keys/generate-keys',
  '/api/v1/chamber/keys/backups',
  '/api/v1/chamber/keys/deposit-data',
  '/api/v1/chamber/slashing-protection',
  '/eth/v1/keystores',
  '/reload',
);
