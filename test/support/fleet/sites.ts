// The places of the model where keys can be: a lone signer with a file, replicas with a table, others with a PostgreSQL
// that fails over, a fleet that its state table binds to one of three stores, and an enclave. Each starts its signers
// with the keys that belong there.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../../../common/observe/clock.ts';
import { type DynamoDBServer, dynamoDBClientOptions } from '../../../rehearsal/dynamodb.ts';
import {
  createDynamoDBClient,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
} from '../../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../../signer/aws/table-definition.ts';
import { bindingCodes, SLASHING_STORE } from '../../../signer/chamber/binding-row.ts';
import { type BindingTable, bindingTable } from '../../../signer/chamber/binding-table.ts';
import { importKeys } from '../../../signer/keys/management/import.ts';
import { keyTableDefinition } from '../../../signer/keys/table/definition.ts';
import { TableFreshness } from '../../../signer/keys/table/freshness.ts';
import { KeyCipher } from '../../../signer/keys/table/key-cipher.ts';
import { TableLoader } from '../../../signer/keys/table/loader.ts';
import { openKeyTable } from '../../../signer/keys/table/table.ts';
import { quietLog } from '../slashing.ts';
import type { FleetCluster } from './cluster.ts';
import type { Missing } from './gate.ts';
import { type FleetKey, type FleetKeys, KEYSTORE_PASSWORD } from './keys.ts';
import { FleetSigner, type SignerOptions } from './signer.ts';
import type { FleetTables } from './signer-parts.ts';
import {
  clusterStore,
  dynamodbStore,
  type FleetStore,
  isKept,
  type KeptStore,
  type StoreCopy,
  sqliteStore,
} from './stores.ts';
import type { WorldTime } from './time.ts';
import { type FleetTrace, tracedCluster, tracedKept } from './trace.ts';

export interface Site {
  readonly name: string;
  readonly signers: readonly FleetSigner[];
  readonly stores: readonly FleetStore[];
  /** Keys come from a shared table, and a state table binds the fleet. */
  readonly binding: BindingTable | undefined;
  readonly bindingRow: FleetTables['bindingRow'] | undefined;
  /** Earlier rows, and when one of them was put back last. */
  readonly earlierRows: Item[];
  rowPutBackAt: number;
  readonly isEnclave: boolean;
  /** Public keys of the key files that signers find at their start. */
  readonly fileKeys: Set<string>;
  readonly copies: Map<KeptStore, StoreCopy[]>;
  /** Stores with older items that only the signers that run have seen newer: one that starts would not notice them. */
  readonly olderItems: Set<FleetStore>;
  /** The servers of a site that uses PostgreSQL. */
  readonly cluster: FleetCluster | undefined;
  /** One at a time: what stops signers, and what commands do with their stores. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

export interface SiteParts {
  readonly server: DynamoDBServer;
  readonly client: DynamoDBClient;
  readonly cluster: FleetCluster;
  readonly directory: string;
  /** This world's, for names of tables. */
  readonly id: string;
  readonly time: WorldTime;
  readonly keys: FleetKeys;
  readonly missing: Missing | undefined;
  readonly onReleased: SignerOptions['onReleased'];
  /** The stores tell what is asked of them. */
  readonly trace?: FleetTrace | undefined;
}

export async function openSites(parts: SiteParts): Promise<Site[]> {
  const file = (name: string) =>
    tracedKept(sqliteStore(name, join(parts.directory, name, `${name}.sqlite`), parts), parts.trace);
  const table = async (name: string) =>
    tracedKept(await dynamodbStore(name, `${parts.id}-${name}`, parts), parts.trace);
  const lone = file('lone');
  const shared = await table('shared');
  const [first, second, common] = [file('first'), file('second'), await table('common')];
  const sealed = await table('sealed');
  const tables = await fleetTables(parts);
  await parts.cluster.begin();
  const database = tracedCluster(clusterStore('database', parts.cluster, parts.missing), parts.cluster, parts.trace);
  return [
    siteOf('lone', [['lone', lone]], parts),
    siteOf(
      'replicas',
      ['replica 1', 'replica 2'].map((name) => [name, shared] as const),
      parts,
    ),
    siteOf(
      'fleet',
      [
        ['first', first],
        ['second', second],
        ['common 1', common],
        ['common 2', common],
      ],
      parts,
      { tables },
    ),
    siteOf('enclave', [['enclave', sealed]], parts, { isEnclave: true }),
    siteOf(
      'cluster',
      ['cluster 1', 'cluster 2'].map((name) => [name, database] as const),
      parts,
      { cluster: parts.cluster },
    ),
  ];
}

interface SiteKind {
  readonly tables?: FleetTables;
  readonly cluster?: FleetCluster;
  readonly isEnclave?: boolean;
}

function siteOf(
  name: string,
  members: readonly (readonly [string, FleetStore])[],
  { time, keys, missing, onReleased, trace }: SiteParts,
  { tables, cluster, isEnclave = false }: SiteKind = {},
): Site {
  const stores = [...new Set(members.map(([_name, store]) => store))];
  let turn: Promise<unknown> = Promise.resolve();
  return {
    name,
    stores,
    signers: members.map(([signer, store]) => {
      const parts = { store, isEnclave, tables, missing, keys, onReleased };
      return new FleetSigner({ name: `${name}/${signer}`, ...parts, trace: trace?.binding }, time);
    }),
    binding: tables?.binding,
    bindingRow: tables?.bindingRow,
    earlierRows: [],
    rowPutBackAt: Number.NEGATIVE_INFINITY,
    isEnclave,
    fileKeys: new Set(),
    copies: new Map(stores.filter(isKept).map((store) => [store, []])),
    olderItems: new Set(),
    cluster,
    exclusive(work) {
      const result = turn.then(work);
      turn = result.catch(() => undefined);
      return result;
    },
  };
}

export async function fleetTables({
  server,
  client,
  id,
  trace,
}: Pick<SiteParts, 'server' | 'client' | 'id' | 'trace'>): Promise<FleetTables> {
  const [stateTable, keyTable] = [`${id}-state`, `${id}-keys`];
  await server.createTable(tableDefinition(stateTable));
  await server.createTable(keyTableDefinition(keyTable));
  const secret = (name: string) => createHash('sha256').update(name).digest();
  return {
    binding: bindingTable(client, stateTable, bindingCodes(secret('binding'))),
    bindingRow: {
      async read() {
        const call = new GetItemCommand({
          TableName: stateTable,
          Key: { pk: { S: SLASHING_STORE } },
          ConsistentRead: true,
        });
        return (await client.send(call)).Item;
      },
      async put(Item) {
        if (trace !== undefined) trace.binding.isOver = true;
        await client.send(new PutItemCommand({ TableName: stateTable, Item }));
      },
    },
    openKeys(store) {
      const keyCipher = new KeyCipher(secret('keys'));
      const connection = { client, tableName: keyTable, keyCipher, freshness: new TableFreshness() };
      const shared = { ...connection, clock: systemClock, log: quietLog };
      const loader = new TableLoader(
        { statusFilter: ['active'], refreshIntervalSeconds: 1, maxConcurrentReads: 16 },
        { ...shared, store, onLoaded: () => undefined, onLookFailed: () => undefined },
      );
      return { rows: openKeyTable(shared), loader };
    },
  };
}

/** Start a signer, with the keys of its files, and of memory as whoever runs it puts them back. */
export async function startSigner(site: Site, signer: FleetSigner, keys: readonly FleetKey[], step: number) {
  await signer.start(step);
  for (const key of keys) if (site.fileKeys.has(key.publicKey)) addFile(signer, key);
  if (site.binding !== undefined) return;
  for (const key of keys) if (isAtHome(key, site)) await postAgain(signer, key);
}

export function addFile(signer: FleetSigner, { secret, publicKey }: FleetKey): void {
  signer.running.store.add(Uint8Array.from(secret), 'filesystem', publicKey);
}

/** The key signs here, by memory, and nobody is about to move it. */
export function isAtHome(key: FleetKey, site: Site): boolean {
  return !key.isBusy && key.site === site.name && key.next === undefined && !site.fileKeys.has(key.publicKey);
}

export async function postAgain(signer: FleetSigner, key: FleetKey): Promise<void> {
  key.isBusy = true;
  try {
    await post(signer, key, undefined, false);
  } finally {
    key.isBusy = false;
  }
}

export async function post(signer: FleetSigner, key: FleetKey, file: string | undefined, persist: boolean) {
  const items = [{ keystore: key.keystore, password: Buffer.from(KEYSTORE_PASSWORD) }];
  const request = { items, slashingProtection: file, persist, allows: () => true };
  const [result] = await importKeys(request, signer.running.parts, new AbortController().signal);
  return result?.status;
}

export function openClient(server: DynamoDBServer): DynamoDBClient {
  return createDynamoDBClient(dynamoDBClientOptions(server.endpoint));
}
