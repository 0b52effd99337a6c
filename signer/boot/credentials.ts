// How this process reaches AWS: what the step "credentials" answers. Outside an enclave the SDK's own chain decides;
// enclave/parts.ts has the enclave's way.

import type { AwsClientOptions } from '../aws/client.ts';
import type { KmsOptions } from '../aws/kms.ts';

export interface AwsAccess {
  readonly client: Pick<AwsClientOptions, 'region' | 'credentials' | 'authorities'>;
  readonly kms: Pick<KmsOptions, 'credentials' | 'recipient' | 'encryptCredentials' | 'authorities'>;
}

export const DEFAULT_AWS_ACCESS: AwsAccess = { client: {}, kms: {} };
