// What an error of a KMS call says about the key (AWS KMS API Reference, Errors). Alone: the table is the reference's,
// and kms.ts makes the calls.

import type { CustodyKeyFault } from '../../ceremony/custody-keys.ts';
import { NsmError } from '../tee/nsm.ts';
import { CmsError } from '../tee/recipient.ts';
import { type AwsFault, awsFault } from './errors.ts';

export class UnusableKey extends Error {
  readonly fault: CustodyKeyFault;

  constructor(fault: CustodyKeyFault) {
    super(`the custody key is of no use: ${fault}`);
    this.name = 'UnusableKey';
    this.fault = fault;
  }
}

const NAMED: ReadonlyMap<string, CustodyKeyFault> = new Map([
  ['DisabledException', 'disabled'],
  ['KMSInvalidStateException', 'invalid_state'],
  ['NotFoundException', 'not_found'],
  ['InvalidCiphertextException', 'bad_ciphertext'],
  ['IncorrectKeyException', 'bad_ciphertext'],
  ['KeyUnavailableException', 'unreachable'],
  ['DependencyTimeoutException', 'unreachable'],
]);

const SHARED: Readonly<Record<AwsFault, CustodyKeyFault>> = {
  not_found: 'not_found',
  denied: 'denied',
  throttled: 'throttled',
  unreachable: 'unreachable',
  condition_failed: 'failed',
  conflict: 'failed',
  failed: 'failed',
};

export function kmsFault(error: unknown, attested = false): CustodyKeyFault {
  if (error instanceof UnusableKey) return error.fault;
  if (error instanceof NsmError) return 'no_attestation';
  if (error instanceof CmsError) return 'bad_envelope';
  // KMS denies in the same words whether a principal or a condition of the policy is not met.
  if (attested && error instanceof Error && error.name === 'AccessDeniedException') return 'attestation_denied';
  const named = error instanceof Error ? NAMED.get(error.name) : undefined;
  return named ?? SHARED[awsFault(error)];
}
