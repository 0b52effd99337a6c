// With which credentials and roots the clients of AWS are made, and what KMS decrypted with those credentials. A signer
// that uses none of them loads no client.

import type { AwsClientOptions } from './client.ts';
import type { KmsOptions } from './kms.ts';

export interface AwsAccess {
  readonly client: Pick<AwsClientOptions, 'region' | 'credentials' | 'authorities'>;
  readonly kms: Pick<KmsOptions, 'credentials' | 'recipient' | 'encryptCredentials' | 'authorities'>;
  /** Of the slashing store in PostgreSQL: an enclave's is sealed, and then not in its URL. */
  readonly databasePassword?: string | undefined;
}

/** The SDK's own chain, outside an enclave. */
export const DEFAULT_AWS_ACCESS: AwsAccess = { client: {}, kms: {} };
