// Step "credentials": how this process reaches AWS. Outside an enclave the SDK's own chain decides; inside, the region is that of the
// declared DynamoDB endpoint, credentials are the parent's, and KMS encrypts what it gives to this process.

import type { AwsClientOptions } from '../aws/client.ts';
import type { KmsOptions } from '../aws/kms.ts';
import type { World } from '../boot.ts';
import { dynamodbRegions } from '../config/egress-needs.ts';
import type { Config } from '../config/options.ts';
import { usesDynamoDB } from '../config/rules-enclave.ts';
import { firstCredentials, parentCredentials } from '../tee/credentials.ts';
import { cachedDocuments } from '../tee/evidence.ts';
import { createKmsRecipient } from '../tee/kms-recipient.ts';

export interface AwsAccess {
  readonly client: Pick<AwsClientOptions, 'region' | 'credentials'>;
  readonly kms: Pick<KmsOptions, 'credentials' | 'recipient'>;
}

/** What the SDK finds by itself. */
export const DEFAULT_AWS_ACCESS: AwsAccess = { client: {}, kms: {} };

/** @throws Error when the parent gives no credentials */
export async function openAwsAccess(config: Config, { enclave, logger, clock }: World): Promise<AwsAccess> {
  if (enclave === undefined || !usesDynamoDB(config)) return DEFAULT_AWS_ACCESS;
  const [region] = dynamodbRegions(config.tee.nitro.egress.endpoints);
  if (region === undefined) throw new Error('tee.nitro.egress declares no DynamoDB endpoint'); // the rules have seen to it
  const log = logger.module('tee');
  const credentials = parentCredentials(enclave.platform.parent, { clock, log });
  await firstCredentials(credentials, { log, patience: enclave.credentialsPatience });
  log.info({ region }, 'the parent gives AWS credentials');
  const recipient = await createKmsRecipient({ nsm: cachedDocuments(enclave.nsm, clock) });
  return { client: { region, credentials }, kms: { credentials, recipient } };
}
