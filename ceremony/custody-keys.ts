// What the ceremony needs from the system that holds the custody keys. A key that does not work answers with its
// reason, never an exception, because any threshold of the keys is enough.

import type { Deployment } from './definition.ts';

/** Why one key ARN did not serve, and what an operator looks at next. */
export const KEY_FAULTS = {
  outside_ceremony: 'not in the ceremony of this signer, so it was not called',
  disabled: 'disabled: enable it',
  invalid_state: 'not in a usable state: pending deletion, pending import, or its key store is disconnected',
  not_found: 'not there: deleted, or never was in this region and account',
  denied: 'access denied: by the key policy, the role, or the attestation that the policy asks for',
  attestation_denied:
    'access denied to an attested call, an attestation policy mismatch unless the role lacks kms:Decrypt: compare the PCR values that the ' +
    'key policy asks for with those of this image, configuration and ceremony',
  no_attestation: 'not called, for the NSM gave no attestation document',
  disclosed:
    'it answered with the share itself where only an envelope for this enclave was asked for: not used. Take the share as disclosed, find ' +
    'out what answers in the place of KMS, and rotate',
  bad_envelope: 'its envelope is not one that this enclave can open; the log names the reason',
  throttled: 'throttled',
  unreachable: 'unreachable: no answer in time',
  bad_ciphertext: 'the ciphertext was not made by this key for this deployment, generation and share',
  wrong_answer: 'the answer is not of this key',
  wrong_share: 'what it decrypted is not the share: it does not fit the others, or another key gave the same one',
  failed: 'refused for another reason, which the log names',
} as const;

export type CustodyKeyFault = keyof typeof KEY_FAULTS;

export interface KeyAttempt {
  readonly arn: string;
  readonly fault: CustodyKeyFault;
}

export type KeyAnswer =
  | { readonly ok: true; readonly arn: string; readonly bytes: Buffer }
  | { readonly ok: false; readonly attempts: readonly KeyAttempt[] };

type ShareContext = Readonly<Record<'service' | 'generation' | 'index', string>> &
  Partial<Readonly<Record<'network' | 'deployment', string>>>;

/** @param deployment undefined for a share of a record from before records named one */
export function shareContext({ network, id }: Deployment, generation: number, index: number): ShareContext {
  return { service: 'strongroom', network, deployment: id, generation: String(generation), index: String(index) };
}

/** `arns` are one custody key's, in the order to try. The bytes of an answer are the receiver's to wipe. */
export interface CustodyKeys {
  encryptShare(index: number, arns: readonly string[], share: Buffer, context: ShareContext): Promise<KeyAnswer>;
  decryptShare(index: number, arns: readonly string[], ciphertext: Buffer, context: ShareContext): Promise<KeyAnswer>;
}

export interface CustodyKeyResult {
  readonly index: number;
  readonly arns: readonly string[];
  readonly ok: boolean;
  readonly attempts: readonly KeyAttempt[];
}

export function describeKeyResult({ index, arns, ok, attempts }: CustodyKeyResult): string {
  if (ok) return `key ${index} (${arns.join(', ')}): served`;
  return `key ${index}: ${attempts.map(({ arn, fault }) => `${arn} ${KEY_FAULTS[fault]}`).join('; ')}`;
}
