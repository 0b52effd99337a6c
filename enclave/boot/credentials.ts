// Step "credentials": how this process reaches AWS. Outside an enclave, the SDK's own chain decides. Inside, the region
// is that of the declared DynamoDB endpoint. The enclave calls KMS with the parent's credentials, and KMS encrypts its
// answers to this process. It calls the tables with the parent's credentials, too, or with sealed credentials that only
// this image can open.

import { ceremonyArns } from '../../ceremony/definition.ts';
import type { AwsClientOptions, AwsCredentials } from '../aws/client.ts';
import { createKms, type KmsOptions } from '../aws/kms.ts';
import { openTableCredentials } from '../aws/table-credentials.ts';
import { dynamodbRegions, usesDynamoDB } from '../config/egress-needs.ts';
import type { Config } from '../config/options.ts';
import { createKmsRecipient } from '../tee/kms/recipient.ts';
import { cachedDocuments } from '../tee/nsm/evidence.ts';
import { firstCredentials, parentCredentials } from '../tee/parent/credentials.ts';
import type { Enclave } from './enclave/measure.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface AwsAccess {
  readonly client: Pick<AwsClientOptions, 'region' | 'credentials'>;
  readonly kms: Pick<KmsOptions, 'credentials' | 'recipient'>;
}

/** What the SDK finds by itself. */
export const DEFAULT_AWS_ACCESS: AwsAccess = { client: {}, kms: {} };

/** @throws Error when the parent gives no credentials, or the sealed ones do not open */
export async function openAwsAccess(
  config: Pick<Config, 'anti_slashing' | 'key_sources' | 'signer_state' | 'tee'>,
  { telemetry }: { readonly telemetry: Pick<Telemetry, 'kmsCalled'> },
  { enclave, logger, clock }: World,
): Promise<AwsAccess> {
  if (enclave === undefined || !usesDynamoDB(config)) return DEFAULT_AWS_ACCESS;
  const [region] = dynamodbRegions(config.tee.nitro.egress.endpoints);
  // the rules have seen to it
  if (region === undefined) throw new Error('tee.nitro.egress declares no DynamoDB endpoint');
  const log = logger.module('tee');
  const credentials = parentCredentials(enclave.platform.parent, { clock, log });
  await firstCredentials(credentials, { log, patience: enclave.credentialsPatience });
  log.info({ region }, 'the parent gives AWS credentials');
  const recipient = await createKmsRecipient({ nsm: cachedDocuments(enclave.nsm, clock) });
  const kms = { credentials, recipient };
  const sealed = await openSealed(config.tee, { ...kms, onCall: telemetry.kmsCalled }, { enclave, logger });
  return { client: { region, credentials: sealed ?? credentials }, kms };
}

/** Undefined without `tee.nitro.table_credentials`. */
async function openSealed(
  { nitro }: Config['tee'],
  kmsOptions: Omit<KmsOptions, 'ceremonyArns'>,
  { enclave, logger }: { readonly enclave: Enclave; readonly logger: World['logger'] },
): Promise<AwsCredentials | undefined> {
  const { ciphertext, key_arn: keyArn } = nitro.table_credentials;
  if (ciphertext === undefined || keyArn === undefined) return undefined;
  const { ceremony } = enclave;
  const log = logger.module('tee');
  const kms = createKms({ ...kmsOptions, ceremonyArns: ceremonyArns(ceremony) }, { log });
  try {
    const sealed = { ciphertext: Buffer.from(ciphertext, 'base64'), keyArn };
    const credentials = await openTableCredentials(sealed, { kms, ceremony });
    log.info({ key_arn: keyArn }, 'the tables are called with the sealed credentials of the configuration');
    return credentials;
  } finally {
    kms.close();
  }
}
