// Keys that come and go: what is answered of a key is true of every copy of it, whatever sources hold it and whatever
// goes on beside it. On a real key table, real key files and slashing protection on SQLite.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { generateKeys } from '../../../signer/keys/management/generate.ts';
import { listManagedKeys } from '../../../signer/keys/management/list.ts';
import { newTableKey } from '../../support/key-table.ts';
import { writeKeystore, writeRawKey } from '../../support/keys.ts';
import { changeOne, deleteOne, importOne, listAll, type ManagedSigner } from '../../support/managed-signer.ts';
import { attestation, randaoReveal, voluntaryExit } from '../../support/messages.ts';
import { KEY, publicKey, secretKey, statusOfRow, world } from './managed-world.ts';

const API = { 'the Key Manager API': false, 'the chamber': true } as const;

describe('while keys are still being loaded', () => {
  const STARTING = { reason: 'starting', status: 503 };

  it.each(Object.entries(API))(
    'a deletion by %s is starting: a file that is read later may hold the key',
    async (_, fromTable) => {
      writeRawKey(world.directory, 'own', secretKey);
      const signer = await world.startLoading();
      await expect(deleteOne(signer.parts, publicKey, fromTable)).rejects.toMatchObject(STARTING);
      await signer.loader.load();
      await expect(deleteOne(signer.parts, publicKey, fromTable)).rejects.toMatchObject(STARTING);
      await signer.loadFiles(world.directory);
      signer.store.completeFirstLoad();
      expect(await deleteOne(signer.parts, publicKey, fromTable)).toMatchObject({
        status: 'error',
        records: { data: [] },
      });
      expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
    },
  );

  it.each([{ persist: false }, { persist: true }])(
    'an import with %o is starting, and nothing of it is there',
    async (storage) => {
      const signer = await world.startLoading();
      await expect(importOne(signer.parts, secretKey, storage)).rejects.toMatchObject(STARTING);
      expect(signer.store.find(publicKey)).toBeUndefined();
      expect(await statusOfRow(signer)).toBeUndefined();
    },
  );

  it('a change of status is starting, and the row is as it was', async () => {
    const signer = await world.startLoading();
    await signer.table.create([KEY]);
    await signer.loader.load(); // the files are not read yet
    await expect(changeOne(signer.parts, publicKey, 'inactive')).rejects.toMatchObject(STARTING);
    expect(await statusOfRow(signer)).toBe('active');
    expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
  });

  it('keys are generated: nobody else can hold them', async () => {
    const signer = await world.startLoading();
    const table = { rows: signer.table, loader: signer.loader };
    const [made] = await generateKeys(
      { count: 1, terms: undefined },
      { encryptBackup: undefined, network: { configName: 'mainnet', genesisForkVersion: new Uint8Array(4) } },
      { ...signer.parts, table },
      new AbortController().signal,
    );
    await signer.loader.load();
    signer.store.completeFirstLoad();
    expect(signer.store.publicKeys()).toEqual([made?.publicKey]);
    expect(await signer.ask(made?.publicKey ?? '', randaoReveal())).toBe('signed');
  });

  it('nothing is promised of keys that a sealed signer has forgotten', async () => {
    const signer = await world.start();
    await signer.table.create([KEY]);
    signer.store.seal();
    for (const fromTable of Object.values(API)) {
      await expect(deleteOne(signer.parts, publicKey, fromTable)).rejects.toMatchObject({ reason: 'sealed' });
    }
    await expect(changeOne(signer.parts, publicKey, 'inactive')).rejects.toMatchObject({ reason: 'sealed' });
  });
});

describe.each([[['table', 'files'] as const], [['files', 'table'] as const]])(
  'a key of the table and of a file, loaded as %s',
  (order) => {
    let signer: ManagedSigner;
    beforeEach(async () => {
      await (await world.startLoading()).table.create([KEY]);
      writeRawKey(world.directory, 'own', secretKey);
      signer = await world.start(order);
    });

    it.each(Object.entries(API))(
      'is not deleted by %s, which says why, and signs after a restart as before',
      async (_, fromTable) => {
        expect(await deleteOne(signer.parts, publicKey, fromTable)).toMatchObject({
          status: 'error',
          message: expect.stringMatching(/key file .* delete the file/),
        });
        expect(await statusOfRow(signer)).toBe('active');
        expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
        expect(await (await world.start(order)).ask(publicKey, randaoReveal())).toBe('signed');
      },
    );

    it('does not become inactive: the file would let it sign', async () => {
      const result = await changeOne(signer.parts, publicKey, 'inactive');
      expect(result).toMatchObject({ status: 'error', message: expect.stringMatching(/key file .* delete the file/) });
      expect(await statusOfRow(signer)).toBe('active');
      expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
    });

    it('is listed once, with both sources, and by the filter of either', async () => {
      const source = order[0] === 'table' ? 'dynamodb' : 'filesystem';
      const listed = [
        expect.objectContaining({ publicKey, source, sources: ['filesystem', 'dynamodb'], loaded: true }),
      ];
      expect(await listAll(signer.parts)).toEqual(listed);
      expect(await listAll(signer.parts, { limit: 1 })).toEqual(listed);
      expect(await listAll(signer.parts, { source: 'filesystem' })).toEqual(listed);
      expect(await listAll(signer.parts, { source: 'dynamodb' })).toEqual(listed);
      expect(await listAll(signer.parts, { source: 'memory' })).toEqual([]);
      expect(await listAll(signer.parts, { status: 'active' })).toEqual(listed);
      expect(await listAll(signer.parts, { status: 'inactive' })).toEqual([]);
      expect(signer.store.publicKeys()).toEqual([publicKey]);
      expect(Object.values(signer.store.countBySource()).reduce((sum, count) => sum + count)).toBe(1);
    });
  },
);

describe('a key of the table that a file of this signer cannot give', () => {
  it('is not deleted, because the next start may open the file', async () => {
    await (await world.startLoading()).table.create([KEY]);
    writeKeystore(world.directory, 'own', secretKey, 'TEST password');
    writeFileSync(join(world.directory, 'own.password'), 'not yet the right one\n');
    const signer = await world.start(['table', 'files']);
    for (const fromTable of Object.values(API)) {
      expect(await deleteOne(signer.parts, publicKey, fromTable)).toMatchObject({ status: 'error' });
    }
    expect(await changeOne(signer.parts, publicKey, 'inactive')).toMatchObject({ status: 'error' });
    expect(await listAll(signer.parts)).toMatchObject([{ source: 'dynamodb', sources: ['filesystem', 'dynamodb'] }]);
  });

  it('and that is in no other source is an error to delete, and not listed', async () => {
    writeKeystore(world.directory, 'own', secretKey, 'TEST password');
    writeFileSync(join(world.directory, 'own.password'), 'not yet the right one\n');
    const signer = await world.start(['table', 'files']);
    expect(await deleteOne(signer.parts, publicKey, false)).toMatchObject({ status: 'error' });
    expect(await listAll(signer.parts)).toEqual([]);
    expect(await listAll(signer.parts, { source: 'filesystem' })).toEqual([]);
  });
});

describe('a key whose row is inactive on another replica while a file here lets it sign', () => {
  it('is listed and logged as what it is', async () => {
    const owner = await world.startLoading();
    await owner.table.create([KEY]);
    writeRawKey(world.directory, 'own', secretKey);
    const signer = await world.start(['files', 'table']);
    await owner.table.setStatus([{ publicKey, status: 'inactive' }]);
    await signer.loader.refresh();
    await world.table.moveRevision(publicKey);
    await signer.loader.refresh();
    expect(signer.lines.filter(({ message }) => message.includes('inactive in the table signs'))).toHaveLength(1);
    const listed = [expect.objectContaining({ publicKey, source: 'filesystem', status: 'inactive', loaded: true })];
    expect(await listAll(signer.parts)).toEqual(listed);
    expect(await listAll(signer.parts, { status: 'inactive', source: 'filesystem' })).toEqual(listed);
    expect(await listAll(signer.parts, { status: 'active', source: 'filesystem' })).toEqual([]);
    expect(signer.loads.at(-1)?.keys).toEqual({ active: 0, inactive: 0 }); // counted where it signs
  });
});

describe('a key of memory that gets a row on another replica', () => {
  let signer: ManagedSigner;
  let owner: ManagedSigner;
  beforeEach(async () => {
    signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: false });
    owner = await world.start();
    await importOne(owner.parts, secretKey, { persist: true });
  });

  it('is listed once, with both sources', async () => {
    const listed = [expect.objectContaining({ publicKey, source: 'memory', sources: ['dynamodb', 'memory'] })];
    expect(await listAll(signer.parts)).toEqual(listed);
    expect(await listAll(signer.parts, { source: 'memory' })).toEqual(listed);
    expect(await listAll(signer.parts, { source: 'dynamodb' })).toEqual(listed);
    expect(await listAll(signer.parts, { source: 'filesystem' })).toEqual([]);
    expect(signer.loader.hasRow(publicKey)).toBe(false);
    await signer.loader.refresh();
    expect(signer.loader.hasRow(publicKey)).toBe(true);
    expect(await listAll(signer.parts)).toEqual(listed);
  });

  it('makes no page longer than was asked for, and is there once whatever their size', async () => {
    const numbers = [3, 4, 5, 6, 7];
    for (const number of numbers)
      await importOne(signer.parts, newTableKey(number).secretKey, { persist: number % 2 === 0 });
    const whole = await listAll(signer.parts);
    expect(whole.map((key) => key.publicKey).sort()).toEqual(
      [KEY, ...numbers.map((number) => newTableKey(number))].map((key) => key.publicKey).sort(),
    );
    for (const limit of [1, 2, 3]) expect(await listAll(signer.parts, { limit })).toEqual(whole);
    expect((await listManagedKeys({ limit: 2 }, signer.parts)).keys.length).toBeLessThanOrEqual(2);
  });

  it('stops when it is made inactive here, also when its row said so already', async () => {
    expect(await changeOne(signer.parts, publicKey, 'inactive')).toEqual({ publicKey, status: 'updated' });
    expect(await signer.ask(publicKey, randaoReveal())).toBe('unknown_key');
    expect(await statusOfRow(signer)).toBe('inactive');
    expect(await changeOne(signer.parts, publicKey, 'inactive')).toEqual({ publicKey, status: 'unchanged' });
    expect(await changeOne(signer.parts, publicKey, 'active')).toEqual({ publicKey, status: 'updated' });
    expect(await signer.ask(publicKey, randaoReveal())).toBe('signed'); // as a key of the table now
    expect(await listAll(signer.parts)).toMatchObject([{ sources: ['dynamodb'] }]);
  });

  it('stops when its row was made inactive elsewhere, at the next look or by a change here', async () => {
    await changeOne(owner.parts, publicKey, 'inactive');
    expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
    expect(await changeOne(signer.parts, publicKey, 'inactive')).toEqual({ publicKey, status: 'updated' });
    expect(await signer.ask(publicKey, randaoReveal())).toBe('unknown_key');
    const third = await world.start(['files']);
    third.store.add(secretKey, 'memory');
    await third.loader.refresh();
    expect(await third.ask(publicKey, randaoReveal())).toBe('unknown_key');
  });

  it('is not deleted by the Key Manager API, which says why: it signs by its row', async () => {
    const deleted = await deleteOne(signer.parts, publicKey, false);
    expect(deleted).toMatchObject({ status: 'error', message: expect.stringContaining('/api/v1/chamber/keys') });
    expect(deleted.records.data).toEqual([]);
    expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
  });

  it('is not deleted by the Key Manager API while its row is inactive, and does not sign either', async () => {
    await owner.table.setStatus([{ publicKey, status: 'inactive' }]);
    expect(await deleteOne(signer.parts, publicKey, false)).toMatchObject({ status: 'error' });
    expect(await signer.ask(publicKey, randaoReveal())).toBe('unknown_key');
    expect(await statusOfRow(signer)).toBe('inactive');
  });

  it('is deleted by the chamber with its row, and comes back neither by a look nor by a restart', async () => {
    expect(await deleteOne(signer.parts, publicKey, true)).toMatchObject({ status: 'deleted' });
    await signer.loader.refresh();
    expect(await signer.ask(publicKey, randaoReveal())).toBe('unknown_key');
    expect(await (await world.start()).ask(publicKey, randaoReveal())).toBe('unknown_key');
  });
});

describe('a key whose row is refused', () => {
  it('is not answered as gone by the Key Manager API: who spoiled the row can put it right', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    const row = await world.table.row(publicKey);
    await world.table.putRow({ ...row, status: { S: 'inactive' } });
    await world.table.moveRevision(publicKey);
    await signer.loader.refresh();
    expect(await signer.ask(publicKey, randaoReveal())).toBe('unknown_key');
    expect(await deleteOne(signer.parts, publicKey, false)).toMatchObject({ status: 'error', records: { data: [] } });
    await world.table.putRow(row);
    await world.table.moveRevision(publicKey);
    await signer.loader.refresh();
    expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
  });
});

describe('a signer that loads inactive keys', () => {
  const EVERY_MESSAGE = [randaoReveal(), voluntaryExit(), attestation({ source: 20, target: 21 })];
  const answersOf = async (signer: ManagedSigner): Promise<readonly string[]> =>
    Promise.all(EVERY_MESSAGE.map((message) => signer.ask(publicKey, message)));
  const RETIRED = EVERY_MESSAGE.map(() => 'key_retired');
  const SIGNED = EVERY_MESSAGE.map(() => 'signed');

  it.each([['a look'], ['a start']])(
    'signs no message with one that another replica made inactive, from %s on',
    async (from) => {
      const owner = await world.start();
      await importOne(owner.parts, secretKey, { persist: true });
      const start = () => world.start(['table'], { statusFilter: ['active', 'inactive'] });
      let signer = await start();
      expect(await answersOf(signer)).toEqual(SIGNED);
      // The store of this world is not shared: the row alone says it, as with a store that keeps no tenures.
      await owner.table.setStatus([{ publicKey, status: 'inactive' }]);
      if (from === 'a start') signer = await start();
      else await signer.loader.refresh();
      for (let looks = 0; looks < 2; looks++) {
        expect(await answersOf(signer)).toEqual(RETIRED);
        await signer.loader.refresh();
      }
      expect(await listAll(signer.parts)).toMatchObject([{ status: 'inactive', loaded: true }]);
      await owner.table.setStatus([{ publicKey, status: 'active' }]);
      await signer.loader.refresh();
      expect((await answersOf(signer)).slice(0, 2)).toEqual(SIGNED.slice(0, 2));
    },
  );

  it('makes keys inactive and active itself', async () => {
    const signer = await world.start(['table'], { statusFilter: ['active', 'inactive'] });
    await importOne(signer.parts, secretKey, { persist: true });
    expect(await changeOne(signer.parts, publicKey, 'inactive')).toMatchObject({ status: 'updated' });
    await signer.loader.refresh();
    expect(await answersOf(signer)).toEqual(RETIRED);
    expect(await changeOne(signer.parts, publicKey, 'active')).toMatchObject({ status: 'updated' });
    expect(await answersOf(signer)).toEqual(SIGNED);
  });
});
