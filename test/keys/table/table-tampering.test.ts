// What somebody who can write the key table can not do.

import { describe, expect, it } from 'vitest';
import type { Item } from '../../../signer/aws/dynamodb.ts';
import { shardOf } from '../../../signer/keys/table/rows.ts';
import { A, B, namesOf, open, openLoaded, replicas, world } from './table-set-up.ts';

/** A, made inactive, and B, active; the rows of A before and after, and a replica that knows neither. */
async function twoKeys() {
  const owner = await openLoaded();
  await owner.table.create([A, B]);
  const active = await world.row(A.publicKey);
  await owner.table.setStatus([{ publicKey: A.publicKey, status: 'inactive' }]);
  return { owner, active, inactive: await world.row(A.publicKey), rowOfB: await world.row(B.publicKey) };
}

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
