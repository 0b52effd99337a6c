// The key table on a real table server: a fresh table, signers that share it (replicas), and the hand of somebody who
// can write the table and does not hold the master key.

import { createHash } from 'node:crypto';
import {
  createDynamoDBClient,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
} from '../../enclave/aws/dynamodb.ts';
import { KeyStore } from '../../enclave/keys/store.ts';
import { TableFreshness } from '../../enclave/keys/table/freshness.ts';
import { type TableLoad, TableLoader, type TableLoaderOptions } from '../../enclave/keys/table/loader.ts';
import { keyOfRevision, keyOfRow, keyTableDefinition, shardOf } from '../../enclave/keys/table/rows.ts';
import { KeySealer } from '../../enclave/keys/table/seal.ts';
import { openKeyTable } from '../../enclave/keys/table/table.ts';
import type { KeyTable, NewTableKey } from '../../enclave/keys/table/types.ts';
import type { BlsCore } from '../../enclave/signing/bls/bls.ts';
import { openBlsCore } from '../../enclave/signing/bls/open.ts';
import { type Clock, systemClock } from '../../observe/clock.ts';
import { type DynamoDBServer, dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { publicKeyOf, testSecret } from './keys.ts';
import { PATIENT } from './patience.ts';
import { type LogLine, recordingLog } from './recording-log.ts';

export interface Replica {
  readonly table: KeyTable;
  readonly loader: TableLoader;
  readonly store: KeyStore;
  readonly core: BlsCore;
  readonly sealer: KeySealer;
  readonly lines: readonly LogLine[];
  /** What each complete look came to. */
  readonly loads: readonly TableLoad[];
  readonly failedLooks: () => number;
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
  const store = new KeyStore({}, { vault: core, clock });
  const sealer = new KeySealer(createHash('sha256').update(masterKey).digest());
  const parts = { client, tableName, sealer, freshness: new TableFreshness(), clock, log };
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
    sealer,
    lines: log.lines,
    loads,
    failedLooks: () => failedLooks,
    async close() {
      await loader.stop();
      client.destroy();
      await core.close();
    },
  };
}
