// The slashing stores of the model: real SQLite files and real tables, with the hand of somebody who makes copies of
// them and puts older copies in their place.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import {
  DeleteItemCommand,
  type DynamoDBClient,
  type Item,
  PutItemCommand,
  ScanCommand,
} from '../../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../../signer/aws/table-definition.ts';
import { NETWORK_PARTITION } from '../../../signer/slashing/dynamodb/tables/items.ts';
import { NO_INCARNATION, readIncarnations } from '../../../signer/slashing/incarnation.ts';
import type { JumpFloor } from '../../../signer/slashing/jump.ts';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import type { DynamoDBServer } from '../../../tools/rehearsal/dynamodb.ts';
import { MAIN_ROOT, quietLog } from '../slashing.ts';
import { openSlashingTable } from '../slashing-dynamodb.ts';
import { openTestBackend } from '../slashing-postgres.ts';
import type { FleetCluster } from './cluster.ts';
import { type Missing, NO_FLOOR } from './gate.ts';
import type { Random } from './random.ts';

const INTEGRITY_KEY = Buffer.alloc(32, 7);

/** What a store was at some moment. */
/** With the incarnations that it holds. */
export type StoreCopy = { readonly step: number; readonly held: readonly string[] } & (
  | { readonly bytes: Buffer }
  | { readonly items: readonly Item[] }
);

export interface FleetStore {
  readonly name: string;
  readonly kind: 'sqlite' | 'dynamodb' | 'postgres';
  /** @param floorOf what a database that lost commits is raised to */
  open(floorOf: JumpFloor): Promise<SlashingBackend>;
}

/** A store that somebody makes copies of. */
export interface KeptStore extends FleetStore {
  /** SQLite: closed. */
  copy(step: number): Promise<StoreCopy>;
  /**
   * `in_place`: the same file with other content. `replaced`: another file under the name. SQLite is closed, or
   * replaced.
   */
  restore(copy: StoreCopy, how: 'in_place' | 'replaced'): Promise<void>;
}

/** A store in one file, which may come under another name. */
export interface FileStore extends KeptStore {
  readonly path: string;
  /** Its bytes as they are, closed: nothing opens it for that. */
  bytes(step: number): StoreCopy;
  /** The name under which it is opened from now on. */
  openAs(path: string): void;
}

export function isKept(store: FleetStore): store is KeptStore {
  return 'restore' in store;
}

export function isFile(store: FleetStore | undefined): store is FileStore {
  return store !== undefined && 'openAs' in store;
}

export function sqliteStore(name: string, path: string): FileStore {
  let current = path;
  const open = () =>
    openSqliteBackend(
      { path: current, genesisValidatorsRoot: MAIN_ROOT, integrityKey: INTEGRITY_KEY },
      { log: quietLog },
    );
  return {
    name,
    kind: 'sqlite',
    path,
    open,
    openAs(other) {
      current = other;
    },
    bytes: (step) => ({ step, held: [], bytes: readFileSync(path) }),
    async copy(step) {
      const held = await heldBy(open);
      return { step, held, bytes: readFileSync(path) };
    },
    async restore(copy, how) {
      if (!('bytes' in copy)) throw new Error('a copy of another store');
      const beside = ['-wal', '-shm'].map((suffix) => path + suffix);
      if (how === 'in_place') {
        for (const file of beside) rmSync(file, { force: true });
        writeFileSync(path, copy.bytes);
        return;
      }
      writeFileSync(`${path}.copy`, copy.bytes, { mode: 0o600 });
      for (const file of beside) rmSync(file, { force: true });
      renameSync(`${path}.copy`, path);
    },
  };
}

export async function dynamodbStore(
  name: string,
  tableName: string,
  { server, client }: { readonly server: DynamoDBServer; readonly client: DynamoDBClient },
): Promise<KeptStore> {
  await server.createTable(tableDefinition(tableName));
  const open = () => openSlashingTable(server.endpoint, tableName, { integrityKey: INTEGRITY_KEY });
  return {
    name,
    kind: 'dynamodb',
    open,
    async copy(step) {
      const items = await itemsOf(client, tableName);
      const record = items.find((item) => item['pk']?.S === NETWORK_PARTITION);
      return { step, items, held: readIncarnations(record?.['incarnation']?.S ?? NO_INCARNATION).held };
    },
    async restore(copy) {
      if (!('items' in copy)) throw new Error('a copy of another store');
      await putBack(client, tableName, copy.items);
    },
  };
}

/** Signers reach it by the name that leads to the server of the moment. */
export function clusterStore(name: string, cluster: FleetCluster, missing: Missing | undefined): FleetStore {
  const floorFor =
    (floorOf: JumpFloor): JumpFloor =>
    (highest) =>
      missing === `${cluster.incident}_jump` ? NO_FLOOR : floorOf(highest);
  return {
    name,
    kind: 'postgres',
    open: (floorOf) => openTestBackend(cluster.url, { poolSize: 4, jumpFloor: floorFor(floorOf) }),
  };
}

export async function itemsOf(client: DynamoDBClient, tableName: string): Promise<Item[]> {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
  return Items;
}

/** The table holds these items and no others. */
export async function putBack(client: DynamoDBClient, tableName: string, items: readonly Item[]): Promise<void> {
  const nameOf = (item: Item) => JSON.stringify([item['pk'], item['sk']]);
  const kept = new Set(items.map(nameOf));
  for (const item of await itemsOf(client, tableName)) {
    if (kept.has(nameOf(item))) continue;
    const Key = Object.fromEntries(Object.entries(item).filter(([name]) => name === 'pk' || name === 'sk'));
    await client.send(new DeleteItemCommand({ TableName: tableName, Key }));
  }
  for (const Item of items) await client.send(new PutItemCommand({ TableName: tableName, Item }));
}

/**
 * What a parent can make of copies: each item as it was in one of them. The record is the newest that any of them has.
 */
export function mixedCopy(copies: readonly (StoreCopy & { readonly items: readonly Item[] })[], random: Random) {
  const newest = copies.at(-1);
  if (newest === undefined) throw new Error('there is no copy');
  const items = newest.items.flatMap((item) => {
    if (item['pk']?.S === NETWORK_PARTITION) return [item];
    const { items: others } = random.pick(copies);
    return others.filter((other) => other['pk']?.S === item['pk']?.S);
  });
  return { ...newest, items };
}

async function heldBy(open: () => Promise<SlashingBackend>): Promise<readonly string[]> {
  const backend = await open();
  try {
    return readIncarnations((await backend.identity()).incarnation).held;
  } finally {
    await backend.close();
  }
}
