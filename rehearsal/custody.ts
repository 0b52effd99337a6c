// Everything a signer with a signer state needs, on loopback and thrown away. All keys are TEST keys.

import { randomUUID } from 'node:crypto';
import { generateAgeIdentity } from '../ceremony/age-identity.ts';
import type { CeremonyBlock } from '../ceremony/definition.ts';
import { openRootToken } from '../ceremony/root-token-opening.ts';
import {
  createDynamoDBClient,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
} from '../signer/aws/dynamodb.ts';
import { tableDefinition } from '../signer/aws/table-definition.ts';
import { type DynamoDBServer, dynamoDBClientOptions, startDynamoDB, WAITS_FOR_ANSWERS } from './dynamodb.ts';
import { type KmsServer, type KmsServerOptions, startKmsServer } from './kms/server.ts';

export interface CustodyWorld {
  readonly dynamodb: DynamoDBServer;
  readonly kms: KmsServer;
  readonly identity: string;
  readonly recipient: string;
  /** For a process: dummy credentials, the region, both endpoints. Give `dynamodb` to go through a proxy. */
  environment(endpoints?: { readonly dynamodb?: string; readonly kms?: string }): Record<string, string>;
  createKey(): string;
  createCeremony(options?: { readonly keys?: number; readonly threshold?: number }): CeremonyBlock;
  /** Makes a fresh state table, and a second table for the slashing protection of its fleet. */
  createTable(): Promise<string>;
  /** `signer_state`, `ceremony` and the fleet's `anti_slashing` of a signer on this table. */
  configuration(table: string, ceremony: CeremonyBlock): Record<string, unknown>;
  row(table: string, pk: string): Promise<Item | undefined>;
  putRow(table: string, item: Item): Promise<void>;
  deleteRow(table: string, pk: string): Promise<void>;
  rootToken(table: string): Promise<string>;
  close(): Promise<void>;
}

export const CUSTODY_REGION = 'eu-central-1';

interface CustodyOptions {
  readonly persistent?: boolean;
  readonly kms?: KmsServerOptions;
}

/** One store for all signers of a state table: the state table binds a fleet to it. */
function slashingOf(stateTable: string): string {
  return `${stateTable}-slashing`;
}

export async function startCustody(options: CustodyOptions = {}): Promise<CustodyWorld> {
  const dynamodb = await startDynamoDB(options);
  const kms = await startKmsServer(options.kms);
  const { identity, recipient } = await generateAgeIdentity();
  const client: DynamoDBClient = createDynamoDBClient(dynamoDBClientOptions(dynamodb.endpoint, WAITS_FOR_ANSWERS));
  let tables = 0;

  const createKey = (): string => {
    const arn = `arn:aws:kms:${CUSTODY_REGION}:111122223333:key/${randomUUID()}`;
    kms.createKey([arn]);
    return arn;
  };
  const row: CustodyWorld['row'] = async (TableName, pk) => {
    const call = new GetItemCommand({ TableName, Key: { pk: { S: pk } }, ConsistentRead: true });
    return (await client.send(call)).Item;
  };

  return {
    dynamodb,
    kms,
    identity,
    recipient,
    createKey,
    row,
    environment: (endpoints = {}) => ({
      AWS_REGION: CUSTODY_REGION,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb ?? dynamodb.endpoint,
      AWS_ENDPOINT_URL_KMS: endpoints.kms ?? kms.endpoint,
    }),
    createCeremony: ({ keys = 3, threshold = 2 } = {}) => ({
      generation: 1,
      kms_threshold: threshold,
      kms_keys: Array.from({ length: keys }, () => ({ arns: [createKey()] })),
      retired_kms_keys: [],
      root_token_recipients: [recipient],
    }),
    async createTable() {
      tables += 1;
      const name = `state-${tables}`;
      await dynamodb.createTable(tableDefinition(name));
      await dynamodb.createTable(tableDefinition(slashingOf(name)));
      return name;
    },
    configuration: (table, ceremony) => ({
      signer_state: { backend: 'dynamodb', table },
      anti_slashing: { backend: 'dynamodb', table: slashingOf(table) },
      ceremony,
    }),
    async putRow(TableName, Item) {
      await client.send(new PutItemCommand({ TableName, Item }));
    },
    async deleteRow(TableName, pk) {
      await client.send(new DeleteItemCommand({ TableName, Key: { pk: { S: pk } } }));
    },
    async rootToken(table) {
      const item = await row(table, 'ROOT_TOKEN_BOOTSTRAP');
      const opened = await openRootToken(item?.['value']?.S ?? '', [identity]);
      if (!opened.ok) throw new Error(`the root token does not open: ${opened.refusal}`);
      return opened.token;
    },
    async close() {
      client.destroy();
      await kms.close();
      await dynamodb.close();
    },
  };
}
