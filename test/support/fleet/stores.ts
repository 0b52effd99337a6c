// The slashing stores of the model: real SQLite files and real tables, with the hand of somebody who makes copies of
// them and puts older copies in their place.

import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DynamoDBServer } from '../../../rehearsal/dynamodb.ts';
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
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend, StoreFloor } from '../../../signer/slashing/types.ts';
import { MAIN_ROOT, quietLog } from '../slashing.ts';
import { openSlashingTable } from '../slashing-dynamodb.ts';
import { openTestBackend } from '../slashing-postgres.ts';
import type { FleetCluster } from './cluster.ts';
import { type Missing, NO_FLOOR } from './gate.ts';
import type { Random } from './random.ts';
import { EPOCH_MS, type WorldTime } from './time.ts';

const INTEGRITY_KEY = Buffer.alloc(32, 7);
/** As a service has it (service/stores.ts). */
export const MOST_AWAY_MS = 2 * EPOCH_MS;

/** What a store was at some moment. */
/** With the incarnations that it holds. */
export type StoreCopy = { readonly step: number; readonly held: readonly string[] } & (
  | { readonly bytes: Buffer }
  | { readonly items: readonly Item[] }
);

export interface FleetStore {
  readonly name: string;
  readonly kind: 'sqlite' | 'dynamodb' | 'postgres';
  open(): Promise<SlashingBackend>;
  /** What a doubt raises it to, of what it should be. */
  raisedTo?(floor: StoreFloor): StoreFloor;
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
  /** Closed in order: the folder gets another name, and a copy has its place. */
  setAside(): void;
  /** Its file and its mark come back by their names; false: none was set aside. */
  renameBack(): boolean;
}

export function isKept(store: FleetStore): store is KeptStore {
  return 'restore' in store;
}

export function isFile(store: FleetStore | undefined): store is FileStore {
  return store !== undefined && 'openAs' in store;
}

export interface FileOptions {
  readonly time: WorldTime;
  readonly missing: Missing | undefined;
}

export function sqliteStore(name: string, path: string, { time, missing }: FileOptions): FileStore {
  let current = path;
  const mostAwayMs = missing === 'end_time' ? undefined : MOST_AWAY_MS;
  const open = () =>
    openSqliteBackend(
      { path: current, genesisValidatorsRoot: MAIN_ROOT, integrityKey: INTEGRITY_KEY, mostAwayMs },
      { log: quietLog, now: time.now },
    );
  // The folder is renamed: a name of the file itself is part of what its mark says.
  const [folder, aside] = [dirname(path), `${dirname(path)}.aside`];
  mkdirSync(folder, { recursive: true });
  return {
    name,
    kind: 'sqlite',
    path,
    open,
    openAs(other) {
      current = other;
    },
    bytes: (step) => ({ step, held: [], bytes: readFileSync(path) }),
    setAside() {
      rmSync(aside, { recursive: true, force: true });
      renameSync(folder, aside);
      cpSync(aside, folder, { recursive: true });
    },
    renameBack() {
      if (!existsSync(`${join(aside, basename(path))}-closed`)) return false;
      rmSync(folder, { recursive: true });
      renameSync(aside, folder);
      return true;
    },
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
  return {
    name,
    kind: 'postgres',
    open: () => openTestBackend(cluster.url, { poolSize: 4 }),
    raisedTo: (floor) => (missing === `${cluster.incident}_jump` ? NO_FLOOR : floor),
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
