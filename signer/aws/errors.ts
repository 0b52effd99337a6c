// What an error of an AWS call means to the signer. Only `condition_failed` is an answer about the data: every other
// one must never be shown as a refusal.

import { type ErrorReason, SignerError } from '../api/errors.ts';

export type AwsFault =
  | 'condition_failed' // the service compared, and the stored data is not what the caller required
  | 'conflict' // another transaction holds the item at this moment
  | 'throttled'
  | 'not_found' // no such table or key
  | 'denied' // no credentials, or not allowed
  | 'unreachable' // no answer in time, a broken connection, or an internal error of the service
  | 'failed';

const FAULTS: Readonly<Record<string, AwsFault>> = {
  ConditionalCheckFailedException: 'condition_failed',
  TransactionConflictException: 'conflict',
  TransactionInProgressException: 'conflict',
  ReplicatedWriteConflictException: 'conflict',
  ProvisionedThroughputExceededException: 'throttled',
  RequestLimitExceeded: 'throttled',
  ThrottlingException: 'throttled',
  Throttling: 'throttled',
  LimitExceededException: 'throttled',
  ResourceNotFoundException: 'not_found',
  NotFoundException: 'not_found',
  AccessDeniedException: 'denied',
  CredentialsProviderError: 'denied',
  ExpiredTokenException: 'denied',
  IncompleteSignatureException: 'denied',
  InvalidSignatureException: 'denied',
  MissingAuthenticationTokenException: 'denied',
  UnrecognizedClientException: 'denied',
  InternalServerError: 'unreachable',
  InternalServerException: 'unreachable',
  KMSInternalException: 'unreachable',
  ServiceUnavailable: 'unreachable',
  ServiceUnavailableException: 'unreachable',
  TimeoutError: 'unreachable',
  AbortError: 'unreachable',
};

/** The AWS SDK names neither what lacks nor what to export. */
const LACKING_REGION = {
  problem: 'AWS_REGION is not set to a region',
  remedy: 'export AWS_REGION=eu-central-1 (the region of the tables)',
};
export const LACKING_CREDENTIALS = {
  problem: 'no AWS credentials were found (environment, profile, instance)',
  remedy:
    'export AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where an instance or a pod has a role',
};

/** Also when an error of ours has it for a cause. */
export function lackingSetting(error: unknown): typeof LACKING_REGION | undefined {
  if (!(error instanceof Error)) return undefined;
  if (/^Region (is missing|not accepted)/.test(error.message)) return LACKING_REGION;
  const isOfDefaultChain = error.name === 'CredentialsProviderError' && /from any providers/.test(error.message);
  return isOfDefaultChain ? LACKING_CREDENTIALS : lackingSetting(error.cause);
}

/** The most telling first: one failed condition is an answer about the data. */
const CANCELLATIONS: readonly (readonly [code: string, fault: AwsFault])[] = [
  ['ConditionalCheckFailed', 'condition_failed'],
  ['TransactionConflict', 'conflict'],
  ['ProvisionedThroughputExceeded', 'throttled'],
  ['ThrottlingError', 'throttled'],
];

export function awsFault(error: unknown): AwsFault {
  if (!(error instanceof Error)) return 'failed';
  if (error.name === 'TransactionCanceledException') return cancellation(error);
  const named = Object.hasOwn(FAULTS, error.name) ? FAULTS[error.name] : undefined;
  if (named !== undefined) return named;
  const { code, $metadata } = error as { code?: unknown; $metadata?: { httpStatusCode?: number } };
  // Errors of Node's sockets (ECONNRESET, ENOTFOUND, EPIPE, TLS) carry `code`; those of the service carry the status.
  if (typeof code === 'string' || ($metadata?.httpStatusCode ?? 0) >= 500) return 'unreachable';
  return 'failed';
}

export async function faultsAs<T>(reason: ErrorReason, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new SignerError(reason, { cause, detail: { fault: awsFault(cause), problem } });
  }
}

function cancellation(error: Error): AwsFault {
  const reasons = (error as { CancellationReasons?: readonly { Code?: string }[] }).CancellationReasons ?? [];
  const codes = new Set(reasons.map((reason) => reason.Code));
  return CANCELLATIONS.find(([code]) => codes.has(code))?.[1] ?? 'failed';
}
