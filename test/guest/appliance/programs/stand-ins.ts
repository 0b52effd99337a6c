// What AWS is to the appliance, on the parent's network of the guest: DynamoDB and KMS under their own host names, behind TLS with certificates
// of the image's CA bundle. KMS verifies attestation documents under the root of the guest's NSM and gives the custody keys to one image only.

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer } from 'node:tls';
import { createDynamoDBClient, type DynamoDBClient } from '../../../../enclave/aws/dynamodb.ts';
import { stateTableDefinition } from '../../../../enclave/chamber/state-rows.ts';
import { keyTableDefinition } from '../../../../enclave/keys/table-rows.ts';
import { slashingTableDefinition } from '../../../../enclave/slashing/dynamodb/items.ts';
import { dynamoDBClientOptions, startDynamoDB } from '../../../support/dynamodb.ts';
import { type KmsServer, startKmsServer } from '../../../support/kms-server.ts';
import { CUSTODY_KEYS, DYNAMODB_HOST, GUEST, KMS_HOST, PARENT_HOSTS, TABLES } from '../settings.ts';

export interface StandIns {
  readonly kms: KmsServer;
  /** Past TLS and the proxy: as whoever looks after the tables has it. */
  readonly dynamodb: DynamoDBClient;
}

/** @param registers accepted values of the one image that the custody keys are for, hex */
export async function startStandIns(
  attestationRoot: string,
  registers: Readonly<Record<string, readonly string[]>>,
): Promise<StandIns> {
  const dynamodb = await startDynamoDB();
  for (const definition of [
    stateTableDefinition(TABLES.state),
    keyTableDefinition(TABLES.keys),
    slashingTableDefinition(TABLES.slashing),
  ]) {
    await dynamodb.createTable(definition);
  }
  const kms = await startKmsServer({ attestationRoot });
  for (const arn of CUSTODY_KEYS) {
    kms.createKey([arn]);
    kms.requireAttestation(arn, registers);
  }
  await serveTls(DYNAMODB_HOST, dynamodb.endpoint);
  await serveTls(KMS_HOST, kms.endpoint);
  return { kms, dynamodb: createDynamoDBClient(dynamoDBClientOptions(dynamodb.endpoint)) };
}

/** TLS for a stand-in that has none, on the address that the parent's /etc/hosts gives the name. */
async function serveTls(hostname: string, endpoint: string): Promise<void> {
  const { port } = new URL(endpoint);
  const [address] = PARENT_HOSTS.find(([, name]) => name === hostname) ?? [];
  const server = createServer({ cert: readFileSync(GUEST.certificate), key: readFileSync(GUEST.key) }, (secure) => {
    const upstream = connect({ host: '127.0.0.1', port: Number(port) });
    secure.pipe(upstream).pipe(secure);
    secure.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => secure.destroy()).on('close', () => secure.destroy());
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen({ host: address, port: 443 }, resolve);
  await promise;
}
