// A key table and replicas of it on a real table server. Whoever imports it has a table of its own in every test; what
// is opened is closed after it.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../../rehearsal/dynamodb.ts';
import type { NewTableKey } from '../../../signer/keys/table/types.ts';
import {
  createKeyTableWorld,
  type KeyTableWorld,
  newTableKey,
  type Replica,
  type ReplicaOptions,
} from '../../support/key-table.ts';

export let server: DynamoDBServer;
export let world: KeyTableWorld;
export let replicas: Replica[] = [];

beforeAll(async () => {
  server = await startDynamoDB();
});

afterAll(() => server.close());

beforeEach(async () => {
  world = await createKeyTableWorld(server);
});

afterEach(async () => {
  for (const replica of replicas) await replica.close();
  replicas = [];
  await world.close();
});

export async function open(options: ReplicaOptions = {}): Promise<Replica> {
  const replica = await world.openReplica(options);
  replicas.push(replica);
  return replica;
}

/** A replica that has loaded the table, and answers the list of its keys. */
export async function openLoaded(options: ReplicaOptions = {}): Promise<Replica> {
  const replica = await open(options);
  await replica.loader.load();
  replica.store.completeFirstLoad();
  return replica;
}

export const keys = (from: number, count: number): NewTableKey[] =>
  Array.from({ length: count }, (_, index) => newTableKey(from + index));

export const A = newTableKey(1);
export const B = newTableKey(2);
export const namesOf = (list: readonly NewTableKey[]) => list.map(({ publicKey }) => publicKey).sort();
