// The key table on a real table server: what changes do, what is believed, and what somebody who can write the table
// can not do.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Item, keyOfRow, shardOf } from '../../../enclave/keys/table/rows.ts';
import type { NewTableKey, StoredDeposit } from '../../../enclave/keys/table/types.ts';
import { systemClock } from '../../../observe/clock.ts';
import { type DynamoDBServer, startDynamoDB } from '../../../rehearsal/dynamodb.ts';
import { FAULTS, type FaultProxy, faultTimes, startFaultProxy } from '../../support/fault-proxy.ts';
import {
  createKeyTableWorld,
  type KeyTableWorld,
  newTableKey,
  type Replica,
  type ReplicaOptions,
} from '../../support/key-table.ts';

let server: DynamoDBServer;
let world: KeyTableWorld;
let replicas: Replica[] = [];

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

async function open(options: ReplicaOptions = {}): Promise<Replica> {
  const replica = await world.openReplica(options);
  replicas.push(replica);
  return replica;
}

/** A replica that has loaded the table, and answers the list of its keys. */
async function openLoaded(options: ReplicaOptions = {}): Promise<Replica> {
  const replica = await open(options);
  await replica.loader.load();
  replica.store.completeFirstLoad();
  return replica;
}

const DEPOSIT: StoredDeposit = {
  pubkey: '00',
  withdrawal_credentials: '01',
  amount: 32_000_000_000,
  signature: '02',
  deposit_message_root: '03',
  deposit_data_root: '04',
  fork_version: '00000000',
  network_name: 'mainnet',
  deposit_cli_version: '2.8.0',
};

const keys = (from: number, count: number): NewTableKey[] =>
  Array.from({ length: count }, (_, index) => newTableKey(from + index));
const A = newTableKey(1);
const B = newTableKey(2);
const wish = (publicKey: string, status: 'active' | 'inactive') => ({ publicKey, status });
const namesOf = (list: readonly NewTableKey[]) => list.map(({ publicKey }) => publicKey).sort();

/** A, made inactive, and B, active; the rows of A before and after, and a replica that knows neither. */
async function twoKeys() {
  const owner = await openLoaded();
  await owner.table.create([A, B]);
  const active = await world.row(A.publicKey);
  await owner.table.setStatus([{ publicKey: A.publicKey, status: 'inactive' }]);
  return { owner, active, inactive: await world.row(A.publicKey), rowOfB: await world.row(B.publicKey) };
}

describe('changes', () => {
  it('a created key is listed, has its dates, and gives its secret back', async () => {
    const { table } = await open();
    expect(await table.create([{ ...A, backup: 'armored', deposit: DEPOSIT }])).toEqual(
      new Map([[A.publicKey, 'created']]),
    );
    const row = (await table.get([A.publicKey, B.publicKey])).get(A.publicKey);
    expect(row).toMatchObject({ status: 'active', generation: 1, hasBackup: true, deposit: DEPOSIT });
    expect(row?.createdAt).toBe(row?.updatedAt);
    expect((await table.list({ limit: 10 })).keys).toEqual([row]);
    expect(await table.secretOf(A.publicKey)).toEqual(Buffer.from(A.secretKey));
  });

  it('a key that is there stays as it is, and the rest of the batch is created', async () => {
    const { table } = await open();
    await table.create([{ ...A, status: 'inactive' }]);
    const outcomes = await table.create([A, B]);
    expect(outcomes).toEqual(
      new Map([
        [A.publicKey, 'duplicate'],
        [B.publicKey, 'created'],
      ]),
    );
    expect((await table.get([A.publicKey])).get(A.publicKey)?.status).toBe('inactive');
  });

  it('more keys than one transaction holds are created, listed page by page once each, and deleted', async () => {
    const { table } = await open();
    const many = keys(100, 130);
    await table.create(many);
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await table.list({ limit: 7, cursor });
      expect(page.keys.length).toBeLessThanOrEqual(7);
      listed.push(...page.keys.map(({ publicKey }) => publicKey));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(listed.sort()).toEqual(namesOf(many));
    const deleted = await table.delete(namesOf(many));
    expect(new Set(deleted.values())).toEqual(new Set(['deleted']));
    expect((await table.list({ limit: 1000 })).keys).toEqual([]);
  });

  it('a status is changed, unchanged or not found, and a list can ask for one status', async () => {
    const { table } = await open();
    await table.create([A, B]);
    expect(
      await table.setStatus([
        wish(A.publicKey, 'inactive'),
        wish(B.publicKey, 'active'),
        wish(newTableKey(3).publicKey, 'active'),
      ]),
    ).toEqual(
      new Map([
        [A.publicKey, 'updated'],
        [B.publicKey, 'unchanged'],
        [newTableKey(3).publicKey, 'not_found'],
      ]),
    );
    const inactive = (await table.list({ limit: 10, status: 'inactive' })).keys;
    expect(inactive.map(({ publicKey }) => publicKey)).toEqual([A.publicKey]);
    expect(await table.secretOf(A.publicKey)).toEqual(Buffer.from(A.secretKey));
  });

  it('deposit data is stored once, kept when other data comes, and replaced when asked for', async () => {
    const { table } = await open();
    await table.create([{ ...A, backup: 'armored' }]);
    const other = { ...DEPOSIT, withdrawal_credentials: '99' };
    expect(await table.setDeposit(A.publicKey, DEPOSIT, { replace: false })).toBe('created');
    expect(await table.setDeposit(A.publicKey, DEPOSIT, { replace: false })).toBe('existing');
    expect(await table.setDeposit(A.publicKey, other, { replace: false })).toBe('conflict');
    expect(await table.setDeposit(A.publicKey, other, { replace: true })).toBe('created');
    expect(await table.setDeposit(B.publicKey, other, { replace: true })).toBe('not_found');
    expect((await table.get([A.publicKey])).get(A.publicKey)).toMatchObject({ deposit: other, hasBackup: true });
  });

  it('a cursor that no list gave is refused', async () => {
    const { table } = await open();
    await expect(table.list({ limit: 1, cursor: '16.' })).rejects.toMatchObject({ reason: 'malformed_parameter' });
  });

  it('many writers of one shard all succeed, each key once', async () => {
    const one = await open();
    const two = await open();
    const sameShard = keys(0, 400)
      .filter(({ publicKey }) => shardOf(publicKey) === 5)
      .slice(0, 12);
    const results = await Promise.all(sameShard.flatMap((key) => [one.table.create([key]), two.table.create([key])]));
    const outcomes = results.flatMap((result) => [...result.values()]);
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(12);
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(12);
    const generations = (await one.table.list({ limit: 100 })).keys.map(({ generation }) => generation);
    expect(new Set(generations).size).toBe(12);
  });
});

describe('answers that are lost', () => {
  let proxy: FaultProxy;
  beforeEach(async () => {
    proxy = await startFaultProxy(server.endpoint);
  });
  afterEach(() => proxy.close());

  it.each(['resetAfter', 'dropAnswer', 'internalErrorAfterApplying', 'resetBefore', 'unavailable'] as const)(
    'a change whose answer meets %s is told as what it was',
    async (fault) => {
      const { table } = await open({ endpoint: proxy.endpoint });
      const lose = () => proxy.setRule(faultTimes(2, FAULTS[fault], 'TransactWriteItems'));
      lose();
      expect(await table.create([A])).toEqual(new Map([[A.publicKey, 'created']]));
      lose();
      expect(await table.setStatus([{ publicKey: A.publicKey, status: 'inactive' }])).toEqual(
        new Map([[A.publicKey, 'updated']]),
      );
      lose();
      expect(await table.delete([A.publicKey])).toEqual(new Map([[A.publicKey, 'deleted']]));
    },
    20_000,
  );

  it('a change that was made and is answered with a failed condition, as the echo of a lost answer, is recognised', async () => {
    const { table } = await open({ endpoint: proxy.endpoint });
    const echo = { kind: 'error', status: 400, name: 'ConditionalCheckFailedException', applied: true } as const;
    const lose = () => proxy.setRule(faultTimes(1, echo, 'TransactWriteItems'));
    lose();
    expect(await table.create([A])).toEqual(new Map([[A.publicKey, 'created']]));
    lose();
    expect(await table.setStatus([wish(A.publicKey, 'inactive')])).toEqual(new Map([[A.publicKey, 'updated']]));
    lose();
    expect(await table.setDeposit(A.publicKey, DEPOSIT, { replace: false })).toBe('created');
    lose();
    expect(await table.delete([A.publicKey])).toEqual(new Map([[A.publicKey, 'deleted']]));
    expect(proxy.faults).toBe(4);
  });

  it('a table that stays away is an error and never an answer', async () => {
    const { table } = await open({ endpoint: proxy.endpoint });
    proxy.setRule(() => FAULTS.resetBefore);
    await expect(table.create([A])).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    await expect(table.get([A.publicKey])).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    await expect(table.list({ limit: 1 })).rejects.toMatchObject({ reason: 'key_table_unavailable' });
  });

  it('a look that fails keeps the loaded set and is counted; the next one goes on', async () => {
    await (await open()).table.create([A]);
    const replica = await openLoaded({ endpoint: proxy.endpoint });
    proxy.setRule(() => FAULTS.unavailable);
    await expect(replica.loader.refresh()).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    expect(replica.failedLooks()).toBe(1);
    expect(replica.store.publicKeys()).toEqual([A.publicKey]);
    proxy.setRule(undefined);
    await (await open()).table.create([B]);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual(namesOf([A, B]));
  });

  it('a table that is out of sight for ten seconds is stale, until it is looked at again', async () => {
    let ahead = 0;
    const clock = { now: systemClock.now, monotonic: () => ahead };
    const replica = await openLoaded({ endpoint: proxy.endpoint, clock });
    ahead = 10_000;
    expect(replica.loader.stale).toBe(false);
    ahead = 10_001;
    expect(replica.loader.stale).toBe(true);
    proxy.setRule(() => FAULTS.unavailable);
    await replica.loader.refresh().catch(() => undefined);
    expect(replica.loader.stale).toBe(true);
    proxy.setRule(undefined);
    await replica.loader.refresh();
    expect(replica.loader.stale).toBe(false);
  });

  it('a shard that cannot be read does not keep a key of another shard', async () => {
    const owner = await open();
    const other = keys(3, 50).find(({ publicKey }) => shardOf(publicKey) !== shardOf(A.publicKey));
    if (other === undefined) throw new Error('no such key');
    await owner.table.create([A, other]);
    const replica = await openLoaded({ endpoint: proxy.endpoint });
    await owner.table.setStatus([A, other].map(({ publicKey }) => ({ publicKey, status: 'inactive' as const })));
    const partition = String(keyOfRow(A.publicKey)['pk']?.S);
    proxy.setRule(({ operation, body }) =>
      operation === 'Query' && body.includes(partition) ? FAULTS.unavailable : undefined,
    );
    await expect(replica.loader.refresh()).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    expect(replica.store.publicKeys()).toEqual([A.publicKey]);
    proxy.setRule(undefined);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([]);
  });
});

describe('loading', () => {
  it('loads active keys only, unless the filter says otherwise', async () => {
    const owner = await open();
    await owner.table.create([A, { ...B, status: 'inactive' }]);
    const loaded = await openLoaded();
    expect(loaded.store.publicKeys()).toEqual([A.publicKey]);
    expect(loaded.store.find(A.publicKey)?.source).toBe('dynamodb');
    expect(loaded.loads[0]).toMatchObject({ refusedRows: 0, keys: { active: 1, inactive: 1 }, shardsRead: 16 });
    expect((await openLoaded({ statusFilter: ['active', 'inactive'] })).store.publicKeys()).toEqual(namesOf([A, B]));
  });

  it('reads only the shards that moved', async () => {
    const owner = await open();
    await owner.table.create(keys(0, 40));
    const replica = await openLoaded();
    await replica.loader.refresh();
    expect(replica.loads).toHaveLength(1);
    await owner.table.create([newTableKey(1000)]);
    await replica.loader.refresh();
    expect(replica.loads[1]?.shardsRead).toBe(1);
    expect(replica.store.publicKeys()).toHaveLength(41);
  });

  it('a key made on one replica signs on the other after one look, and an inactive or deleted one stops', async () => {
    const one = await openLoaded();
    const two = await openLoaded();
    await one.table.create([A, B]);
    await two.loader.refresh();
    expect(two.store.publicKeys()).toEqual(namesOf([A, B]));
    await one.table.setStatus([{ publicKey: A.publicKey, status: 'inactive' }]);
    await one.table.delete([B.publicKey]);
    for (const replica of [one, two]) {
      await replica.loader.refresh();
      expect(replica.store.publicKeys()).toEqual([]);
    }
    await one.table.setStatus([{ publicKey: A.publicKey, status: 'active' }]);
    await one.table.create([B]);
    await two.loader.refresh();
    expect(two.store.publicKeys()).toEqual(namesOf([A, B]));
    expect(two.loads.at(-1)?.refusedRows).toBe(0);
  });

  it('a key that another source has stays with it, and the log says so once', async () => {
    await (await open()).table.create([A]);
    const replica = await open();
    replica.store.add(A.secretKey, 'filesystem');
    await replica.loader.load();
    await world.moveRevision(A.publicKey);
    await replica.loader.refresh();
    expect(replica.store.find(A.publicKey)?.source).toBe('filesystem');
    expect(replica.lines.filter(({ message }) => message.includes('another source'))).toHaveLength(1);
    await (await open()).table.delete([A.publicKey]);
    await replica.loader.refresh();
    expect(replica.store.find(A.publicKey)?.source).toBe('filesystem');
  });

  it('a key created and added here is not lost to a look that began before', async () => {
    const proxy = await startFaultProxy(server.endpoint);
    const replica = await openLoaded({ endpoint: proxy.endpoint });
    await world.setRevision(A.publicKey, 1);
    const other = await open();
    proxy.setRule(async ({ operation }) => {
      if (operation !== 'Query') return undefined;
      proxy.setRule(undefined);
      // The revisions are read; now this process makes the key and adds it, and only then the shard is read without it.
      await replica.table.create([A]);
      replica.store.add(A.secretKey, 'dynamodb', A.publicKey);
      const empty = { Count: 0, Items: [], ScannedCount: 0 };
      return { kind: 'answer', body: JSON.stringify(empty) };
    });
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([A.publicKey]);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([A.publicKey]);
    await other.table.delete([A.publicKey]);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([]);
    await proxy.close();
  });

  it('a withheld key is loaded by no look, not even by one that read it before it was released', async () => {
    const proxy = await startFaultProxy(server.endpoint);
    await (await open()).table.create([A]);
    const replica = await openLoaded({ endpoint: proxy.endpoint });
    const release = replica.loader.withhold([A.publicKey]);
    replica.store.remove(A.publicKey);
    await world.moveRevision(A.publicKey);
    await replica.loader.refresh();
    expect(replica.store.find(A.publicKey)).toBeUndefined();
    await world.moveRevision(A.publicKey);
    proxy.setRule(({ operation }) => {
      if (operation === 'Query') release();
      return undefined;
    });
    await replica.loader.refresh();
    expect(replica.store.find(A.publicKey)).toBeUndefined();
    proxy.setRule(undefined);
    await replica.loader.refresh();
    expect(replica.store.find(A.publicKey)).toBeDefined();
    await proxy.close();
  });

  it('after sealing nothing is loaded, created or given out', async () => {
    const replica = await openLoaded();
    await replica.table.create([A]);
    replica.store.seal();
    replica.sealer.wipe();
    await expect(replica.loader.refresh()).rejects.toMatchObject({ reason: 'sealed' });
    await expect(replica.table.secretOf(A.publicKey)).rejects.toMatchObject({ reason: 'sealed' });
    await expect(replica.table.create([B])).rejects.toMatchObject({ reason: 'sealed' });
    expect(replica.store.find(A.publicKey)).toBeUndefined();
  });
});

describe('what whoever can write the table cannot do', () => {
  type Forgery = (rows: { active: Item; inactive: Item; rowOfB: Item }) => Item;
  const FORGERIES: [string, Forgery][] = [
    ['activate a key by its status', ({ inactive }) => ({ ...inactive, status: { S: 'active' } })],
    ['give a key the secret of another', ({ active, rowOfB }) => ({ ...active, secret: rowOfB['secret'] as never })],
    [
      'move a whole row to another key',
      ({ active, rowOfB }) => ({ ...rowOfB, pk: active['pk'] as never, sk: active['sk'] as never }),
    ],
    ['give an older row a later generation', ({ active }) => ({ ...active, generation: { N: '99' } })],
    ['change when it was created', ({ active }) => ({ ...active, created_at: { S: '2020-01-01T00:00:00.000Z' } })],
    ['change when it was updated', ({ active }) => ({ ...active, updated_at: { S: '2020-01-01T00:00:00.000Z' } })],
    ['cut the secret short', ({ active }) => ({ ...active, secret: { B: Buffer.alloc(10) } })],
    ['leave the secret out', ({ active: { secret: _secret, ...rest } }) => rest],
    ['write a status of their own', ({ active }) => ({ ...active, status: { S: 'ACTIVE' } })],
    [
      'write a format version of their own',
      ({ active }) => ({ ...active, secret: { B: Buffer.from(active['secret']?.B ?? []).fill(2, 0, 1) } }),
    ],
  ];

  it.each(FORGERIES)(
    '%s: the row is refused by a signer that never saw it, counted, said, and the others sign',
    async (_, forge) => {
      const rows = await twoKeys();
      await world.putRow(forge(rows));
      await world.moveRevision(A.publicKey);
      const fresh = await openLoaded();
      expect(fresh.store.publicKeys()).toEqual([B.publicKey]);
      expect(fresh.loads.at(-1)?.refusedRows).toBe(1);
      expect(fresh.lines).toContainEqual(
        expect.objectContaining({ level: 'error', fields: expect.objectContaining({ public_key: A.publicKey }) }),
      );
      expect((await fresh.table.get([A.publicKey])).size).toBe(0);
      expect(await fresh.table.secretOf(A.publicKey)).toBeUndefined();
      expect(await fresh.table.setStatus([{ publicKey: A.publicKey, status: 'active' }])).toEqual(
        new Map([[A.publicKey, 'not_found']]),
      );
      await rows.owner.loader.refresh();
      expect(rows.owner.store.publicKeys()).toEqual([B.publicKey]);
    },
  );

  it.each(['backup', 'deposit'])('put %s of their own into a row', async (attribute) => {
    const { owner, rowOfB } = await twoKeys();
    await world.putRow({ ...rowOfB, [attribute]: { S: '{}' } });
    expect((await owner.table.get([B.publicKey])).size).toBe(0);
  });

  it('put a row in the shard of other keys', async () => {
    const { rowOfB } = await twoKeys();
    const otherShard = (shardOf(B.publicKey) + 1) % 16;
    await world.putRow({ ...rowOfB, pk: { S: `KEYS#${String(otherShard).padStart(2, '0')}` } });
    const fresh = await openLoaded();
    expect(fresh.store.publicKeys()).toEqual([B.publicKey]);
    expect(fresh.loads.at(-1)?.refusedRows).toBe(1);
  });

  it('bring rows that another master key sealed', async () => {
    const stranger = await open({ masterKey: 'two' });
    await stranger.table.create([A]);
    await (await open()).table.create([B]);
    const replica = await openLoaded();
    expect(replica.store.publicKeys()).toEqual([B.publicKey]);
    expect(replica.loads[0]?.refusedRows).toBe(1);
  });

  it('make an inactive key active again by putting its old row back', async () => {
    const { owner, active } = await twoKeys();
    const watcher = await openLoaded();
    await owner.loader.refresh();
    await world.putRow(active);
    await world.moveRevision(A.publicKey);
    for (const replica of [owner, watcher]) {
      await replica.loader.refresh();
      expect(replica.store.publicKeys()).toEqual([B.publicKey]);
      expect(replica.loads.at(-1)?.refusedRows).toBe(1);
      expect((await replica.table.get([A.publicKey])).size).toBe(0);
    }
  });

  it('bring a deleted key back by putting its row back', async () => {
    const { owner, rowOfB } = await twoKeys();
    const watcher = await openLoaded();
    await owner.table.delete([B.publicKey]);
    await world.putRow(rowOfB);
    await world.moveRevision(B.publicKey);
    await owner.loader.refresh();
    expect(owner.store.publicKeys()).toEqual([]);
    // One that saw it gone, too.
    await world.deleteRow(B.publicKey);
    await world.moveRevision(B.publicKey);
    await watcher.loader.refresh();
    await world.putRow(rowOfB);
    await world.moveRevision(B.publicKey);
    await watcher.loader.refresh();
    expect(watcher.store.publicKeys()).toEqual([]);
    expect(watcher.loads.at(-1)?.refusedRows).toBe(1);
  });

  it('bring an old row back by setting the revision of its shard back', async () => {
    const { owner, active } = await twoKeys();
    await owner.loader.refresh();
    await world.putRow(active);
    await world.setRevision(A.publicKey, 0);
    await owner.loader.refresh();
    expect(owner.store.publicKeys()).toEqual([B.publicKey]);
    expect(owner.lines).toContainEqual(expect.objectContaining({ message: 'a shard of the key table went back' }));
    // And changes of this signer still count as later than everything before.
    await owner.table.delete([A.publicKey]);
    await owner.table.create([A]);
    await owner.loader.refresh();
    expect(owner.store.publicKeys()).toEqual(namesOf([A, B]));
  });

  it('a key whose row is spoiled stops signing, and signs again when the row is put right', async () => {
    const { owner, rowOfB } = await twoKeys();
    const replica = await openLoaded();
    await world.putRow({ ...rowOfB, status: { S: 'inactive' } });
    await world.moveRevision(B.publicKey);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([]);
    await world.putRow(rowOfB);
    await world.moveRevision(B.publicKey);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([B.publicKey]);
    expect(await owner.table.delete([B.publicKey])).toEqual(new Map([[B.publicKey, 'deleted']]));
  });

  it('nothing secret is in the log', async () => {
    const { owner } = await twoKeys();
    const text = JSON.stringify([owner.lines, ...replicas.map(({ lines }) => lines)]);
    for (const { secretKey } of [A, B]) expect(text).not.toContain(Buffer.from(secretKey).toString('hex'));
  });
});
