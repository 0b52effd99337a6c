// Loading the key table on a real table server: what a replica reads, when, and what it keeps.

import { describe, expect, it } from 'vitest';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import { newTableKey } from '../../support/key-table.ts';
import { A, B, keys, namesOf, open, openLoaded, server, world } from './table-set-up.ts';

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
    replica.keyCipher.wipe();
    await expect(replica.loader.refresh()).rejects.toMatchObject({ reason: 'sealed' });
    await expect(replica.table.secretOf(A.publicKey)).rejects.toMatchObject({ reason: 'sealed' });
    await expect(replica.table.create([B])).rejects.toMatchObject({ reason: 'sealed' });
    expect(replica.store.find(A.publicKey)).toBeUndefined();
  });
});
