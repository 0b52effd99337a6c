// Slashing tables on a DynamoDB of their own: makes tables, opens backends on them, and reads and alters their items
// behind the backend's back, as somebody with access to the table could.

import { decodeHex } from '../../common/formats/hex.ts';
import type { Log } from '../../common/observe/log.ts';
import { type DynamoDBServer, dynamoDBClientOptions, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { AwsClientOptions } from '../../signer/aws/client.ts';
import {
  createDynamoDBClient,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
} from '../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { openDynamoDBBackend } from '../../signer/slashing/dynamodb/backend.ts';
import { rowIntegrity } from '../../signer/slashing/history/codes.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { ownAddress } from './own-address.ts';
import { PATIENT } from './patience.ts';
import { MAIN_ROOT, quietLog } from './slashing.ts';

export interface OpenOptions {
  /** Genesis validators root; default MAIN_ROOT. */
  readonly root?: string;
  /** Base URL; default the server's own. */
  readonly endpoint?: string;
  /** 32 bytes. */
  readonly integrityKey?: Uint8Array;
  readonly maxConcurrentWrites?: number;
  /** Waits for whatever answers unless it says otherwise. */
  readonly client?: AwsClientOptions;
  readonly log?: Log;
  readonly isForJump?: boolean;
}

export interface SlashingTables {
  readonly server: DynamoDBServer;
  /** A new empty table; its name. */
  create(): Promise<string>;
  open(tableName: string, options?: OpenOptions): Promise<SlashingBackend>;
  item(tableName: string, pk: string): Promise<Item | undefined>;
  putItem(tableName: string, item: Item): Promise<void>;
  deleteItem(tableName: string, pk: string): Promise<void>;
  close(): Promise<void>;
}

export async function startSlashingTables(options: { readonly persistent?: boolean } = {}): Promise<SlashingTables> {
  // At an address of its own: a server that stops has its port again when it starts.
  const server = await startDynamoDB({ host: ownAddress(2), ...options });
  const client: DynamoDBClient = createDynamoDBClient(dynamoDBClientOptions(server.endpoint));
  let count = 0;
  return {
    server,
    async create() {
      count += 1;
      const tableName = `slashing-${count}`;
      await server.createTable(tableDefinition(tableName));
      return tableName;
    },
    open: (tableName, open) => openSlashingTable(server.endpoint, tableName, open),
    async item(tableName, pk) {
      const get = new GetItemCommand({ TableName: tableName, Key: { pk: { S: pk } }, ConsistentRead: true });
      return (await client.send(get)).Item;
    },
    async putItem(tableName, item) {
      await client.send(new PutItemCommand({ TableName: tableName, Item: item }));
    },
    async deleteItem(tableName, pk) {
      await client.send(new DeleteItemCommand({ TableName: tableName, Key: { pk: { S: pk } } }));
    },
    async close() {
      client.destroy();
      await server.close();
    },
  };
}

/** A backend on a table of a server that this or another process started. */
export function openSlashingTable(
  endpoint: string,
  tableName: string,
  options: OpenOptions = {},
): Promise<SlashingBackend> {
  const genesisValidatorsRoot = decodeHex(options.root ?? MAIN_ROOT, 32);
  if (genesisValidatorsRoot === undefined) throw new Error('a genesis validators root is 32 bytes of hex');
  return openDynamoDBBackend(
    {
      tableName,
      genesisValidatorsRoot,
      maxConcurrentWrites: options.maxConcurrentWrites ?? 256,
      isForJump: options.isForJump,
      integrity: rowIntegrity({ key: options.integrityKey ?? Buffer.alloc(32, 7), genesisValidatorsRoot }),
      client: dynamoDBClientOptions(options.endpoint ?? endpoint, { ...PATIENT, ...options.client }),
    },
    { log: options.log ?? quietLog },
  );
}
