// What AWS is to the appliance, beside its parent: DynamoDB and KMS under their own host names, behind TLS with
// certificates of the authority that the image names for these hosts. KMS verifies attestation documents under the
// root of the guest's NSM and gives the custody keys to one image only.

import { type AddressInfo, connect } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { dynamoDBClientOptions, startDynamoDB } from '../../../../rehearsal/dynamodb.ts';
import { type KmsServer, type KmsServerOptions, startKmsServer } from '../../../../rehearsal/kms/server.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../../../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../../../signer/aws/table-definition.ts';
import { keyTableDefinition } from '../../../../signer/keys/table/definition.ts';
import { CUSTODY_KEYS, DYNAMODB_HOST, KMS_HOST, LATER_CUSTODY_KEYS, TABLES } from '../settings.ts';

export interface StandIns {
  readonly kms: KmsServer;
  /** Past TLS and the proxy: as whoever looks after the tables has it. */
  readonly dynamodb: DynamoDBClient;
  readonly ports: ReadonlyMap<string, number>;
  /** Connections that are open stay. */
  close(): Promise<void>;
}

export interface StandInOptions {
  /** Whose documents KMS believes. */
  readonly documents: Pick<KmsServerOptions, 'attestationRoot' | 'unsafeUnsignedDocuments'>;
  /** Accepted values of the one image that the custody keys are for, hex. */
  readonly registers: Readonly<Record<string, readonly string[]>>;
  /** PEM, of the name that both hosts are asked for by. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer };
  /** Where the host's name leads to. */
  addressOf(hostname: string): { readonly host: string; readonly port: number };
}

export async function startStandIns({ documents, registers, tls, addressOf }: StandInOptions): Promise<StandIns> {
  const dynamodb = await startDynamoDB();
  for (const definition of [
    tableDefinition(TABLES.state),
    keyTableDefinition(TABLES.keys),
    tableDefinition(TABLES.slashing),
  ]) {
    await dynamodb.createTable(definition);
  }
  const kms = await startKmsServer(documents);
  for (const arn of [...CUSTODY_KEYS, ...LATER_CUSTODY_KEYS]) {
    kms.createKey([arn]);
    kms.requireAttestation(arn, registers);
  }
  const fronts = new Map([
    [DYNAMODB_HOST, await serveTls(dynamodb.endpoint, tls, addressOf(DYNAMODB_HOST))],
    [KMS_HOST, await serveTls(kms.endpoint, tls, addressOf(KMS_HOST))],
  ]);
  return {
    kms,
    dynamodb: createDynamoDBClient(dynamoDBClientOptions(dynamodb.endpoint)),
    ports: new Map([...fronts].map(([hostname, front]) => [hostname, portOf(front)])),
    async close() {
      for (const front of fronts.values()) front.close();
      await kms.close();
      await dynamodb.close();
    },
  };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** TLS for a stand-in that has none. */
async function serveTls(
  endpoint: string,
  tls: StandInOptions['tls'],
  address: { readonly host: string; readonly port: number },
): Promise<Server> {
  const { port } = new URL(endpoint);
  const server = createServer(tls, (secure) => {
    const upstream = connect({ host: '127.0.0.1', port: Number(port) });
    secure.pipe(upstream).pipe(secure);
    secure.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => secure.destroy()).on('close', () => secure.destroy());
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(address, resolve);
  await promise;
  return server;
}
