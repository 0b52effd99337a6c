// The key table on a real table server: a fresh table, signers that share it (replicas), and the hand of somebody who
// can write the table and does not hold the master key.

import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../../common/observe/clock.ts';
import { type DynamoDBServer, dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import {
  createDynamoDBClient,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
} from '../../signer/aws/dynamodb.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { TableFreshness } from '../../signer/keys/table/freshness.ts';
import { KeyCipher } from '../../signer/keys/table/key-cipher.ts';
import { type TableLoad, TableLoader, type TableLoaderOptions } from '../../signer/keys/table/loader.ts';
import { keyOfRevision, keyOfRow, shardOf } from '../../signer/keys/table/rows.ts';
import { openKeyTable } from '../../signer/keys/table/table.ts';
import type { KeyTable, NewTableKey } from '../../signer/keys/table/types.ts';
import { TenureBook } from '../../signer/tenure.ts';
import { publicKeyOf, testSecret } from './keys.ts';
import { PATIENT } from './patience.ts';
import { type LogLine, recordingLog } from './recording-log.ts';

export interface Replica {
  readonly table: KeyTable;
  readonly loader: TableLoader;
  readonly store: KeyStore;
  readonly core: BlsCore;
  readonly keyCipher: KeyCipher;
  readonly lines: readonly LogLine[];
  /** What each complete look came to. */
  readonly loads: readonly TableLoad[];
  readonly failedLooks: () => number;
  /** The slashing store whose tenures loaded copies carry. */
  readTenuresFrom(read: ReadTenures): void;
  close(): Promise<void>;
}

export interface ReplicaOptions extends Partial<TableLoaderOptions> {
  /** Instead of the server's: a proxy. */
  readonly endpoint?: string;
  readonly masterKey?: string;
  readonly clock?: Clock;
  /** Default: portable. */
  readonly coreKind?: BlsCore['kind'];
}

export interface KeyTableWorld {
  readonly tableName: string;
  openReplica(options?: ReplicaOptions): Promise<Replica>;
  row(publicKey: string): Promise<Item>;
  putRow(item: Item): Promise<void>;
  deleteRow(publicKey: string): Promise<void>;
  /** Makes every replica read the shard of the key again, as every change does. */
  moveRevision(publicKey: string): Promise<void>;
  setRevision(publicKey: string, revision: number): Promise<void>;
  close(): Promise<void>;
}

let tables = 0;

export async function createKeyTableWorld(server: DynamoDBServer): Promise<KeyTableWorld> {
  tables += 1;
  const tableName = `keys-${tables}`;
  await server.createTable(keyTableDefinition(tableName));
  const client = createDynamoDBClient(dynamoDBClientOptions(server.endpoint));
  const read = async (Key: Item): Promise<Item | undefined> =>
    (await client.send(new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }))).Item;
  const putRow = async (Item: Item): Promise<void> => {
    await client.send(new PutItemCommand({ TableName: tableName, Item }));
  };
  const setRevision = (publicKey: string, revision: number): Promise<void> =>
    putRow({ ...keyOfRevision(shardOf(publicKey)), revision: { N: String(revision) } });

  return {
    tableName,
    openReplica: (options) => openReplica(server.endpoint, tableName, options),
    async row(publicKey) {
      const item = await read(keyOfRow(publicKey));
      if (item === undefined) throw new Error(`no row of ${publicKey}`);
      return item;
    },
    putRow,
    async deleteRow(publicKey) {
      await client.send(new DeleteItemCommand({ TableName: tableName, Key: keyOfRow(publicKey) }));
    },
    setRevision,
    async moveRevision(publicKey) {
      const item = await read(keyOfRevision(shardOf(publicKey)));
      await setRevision(publicKey, Number(item?.['revision']?.N ?? 0) + 1);
    },
    async close() {
      client.destroy();
    },
  };
}

/** Key number n of a test, to be created. */
export function newTableKey(number: number, changes: Partial<NewTableKey> = {}): NewTableKey {
  const secretKey = testSecret(number);
  return { secretKey, publicKey: publicKeyOf(secretKey), status: 'active', ...changes };
}

type ReadTenures = ConstructorParameters<typeof TenureBook>[0];

async function openReplica(serverEndpoint: string, tableName: string, options: ReplicaOptions = {}): Promise<Replica> {
  const {
    endpoint = serverEndpoint,
    masterKey = 'one',
    clock = systemClock,
    coreKind = 'portable',
    ...changes
  } = options;
  const client: DynamoDBClient = createDynamoDBClient(dynamoDBClientOptions(endpoint, PATIENT));
  const log = recordingLog();
  const core = await openBlsCore({ prefer: coreKind, cores: 1, log });
  let tenures: ReadTenures = async () => new Map();
  const store = new KeyStore({}, { vault: core, clock, tenures: new TenureBook((keys) => tenures(keys)) });
  const keyCipher = new KeyCipher(createHash('sha256').update(masterKey).digest());
  const parts = { client, tableName, keyCipher, freshness: new TableFreshness(), clock, log };
  const loads: TableLoad[] = [];
  let failedLooks = 0;
  const loader = new TableLoader(
    { statusFilter: ['active'], refreshIntervalSeconds: 1, maxConcurrentReads: 16, ...changes },
    {
      ...parts,
      store,
      onLoaded: (load) => loads.push(load),
      onLookFailed: () => {
        failedLooks += 1;
      },
    },
  );
  return {
    table: openKeyTable(parts),
    loader,
    store,
    core,
    keyCipher,
    lines: log.lines,
    loads,
    failedLooks: () => failedLooks,
    readTenuresFrom(read) {
      tenures = read;
    },
    async close() {
      await loader.stop();
      client.destroy();
      await core.close();
    },
  };
}
