// Many keys of the table, and signing that goes on while they come, change and go.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../../rehearsal/dynamodb.ts';
import { createKeyTableWorld, type KeyTableWorld, newTableKey, type Replica } from '../../support/key-table.ts';

const KEYS = 5_000;
const ROOT = Buffer.alloc(32, 5);

let server: DynamoDBServer;
let world: KeyTableWorld;
let owner: Replica;
const opened: Replica[] = [];

beforeAll(async () => {
  server = await startDynamoDB();
  world = await createKeyTableWorld(server);
  owner = await open();
  await owner.table.create(Array.from({ length: KEYS }, (_, number) => newTableKey(number)));
});
afterAll(async () => {
  for (const replica of opened) await replica.close();
  await world.close();
  await server.close();
});

async function open(): Promise<Replica> {
  const replica = await world.openReplica();
  opened.push(replica);
  return replica;
}

it('5,000 keys are loaded once each, and none is listed before all are', async () => {
  const replica = await open();
  const loading = replica.loader.load();
  expect(() => replica.store.publicKeys()).toThrow(expect.objectContaining({ reason: 'starting' }));
  await loading;
  replica.store.completeFirstLoad();
  expect(new Set(replica.store.publicKeys()).size).toBe(KEYS);
  expect(replica.loads).toMatchObject([{ refusedRows: 0, keys: { active: KEYS, inactive: 0 } }]);
});

it('while keys of the same shards come and go, the others sign and stay listed', async () => {
  const replica = await open();
  await replica.loader.load();
  replica.store.completeFirstLoad();
  const steady = Array.from({ length: 100 }, (_, number) => newTableKey(number).publicKey);
  const comings = Array.from({ length: 60 }, (_, number) => newTableKey(KEYS + number));
  const goings = Array.from({ length: 60 }, (_, number) => newTableKey(1_000 + number).publicKey);

  const ended = new AbortController();
  const changes = (async () => {
    for (const [index, coming] of comings.entries()) {
      await owner.table.create([coming]);
      await owner.table.setStatus([{ publicKey: goings[index] ?? '', status: 'inactive' }]);
    }
    ended.abort();
  })();
  const refreshing = (async () => {
    while (!ended.signal.aborted) await replica.loader.refresh();
    await replica.loader.refresh();
  })();
  let signatures = 0;
  while (!ended.signal.aborted) {
    const listed = new Set(replica.store.publicKeys());
    expect(steady.every((publicKey) => listed.has(publicKey))).toBe(true);
    const key = replica.store.find(steady[signatures % steady.length] ?? '');
    if (key === undefined) throw new Error('a steady key is not found');
    expect(await replica.core.sign(key.handle, ROOT, 'normal')).toHaveLength(96);
    signatures += 1;
  }
  await Promise.all([changes, refreshing]);
  expect(signatures).toBeGreaterThan(0);
  const listed = new Set(replica.store.publicKeys());
  expect(listed.size).toBe(KEYS);
  for (const { publicKey } of comings) expect(listed.has(publicKey)).toBe(true);
  for (const publicKey of goings) expect(listed.has(publicKey)).toBe(false);
});
