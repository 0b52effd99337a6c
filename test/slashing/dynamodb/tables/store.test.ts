// The record of a DynamoDB slashing table: which store it is. It is made once, changes by compare-and-swap,
// and stops the start or every check when it is not the one that it was.

import { describe, expect, it } from 'vitest';
import type { Item } from '../../../../signer/aws/dynamodb.ts';
import { NETWORK_PARTITION } from '../../../../signer/slashing/dynamodb/tables/items.ts';
import { NO_INCARNATION } from '../../../../signer/slashing/incarnation.ts';
import type { SlashingBackend } from '../../../../signer/slashing/types.ts';
import { FAULTS, randomFaults } from '../../../support/fault-proxy.ts';
import { block, checkOne, verdictName, vote } from '../../../support/slashing.ts';
import { SlashingTablesBehindProxy } from '../../../support/slashing-dynamodb-world.ts';

const FLOOR = { slot: 1000, sourceEpoch: 30, targetEpoch: 31 };

const world = new SlashingTablesBehindProxy();
const { open } = world;

async function record(): Promise<Item> {
  const item = await world.tables.item(world.tableName, NETWORK_PARTITION);
  if (item === undefined) throw new Error('the table has no record');
  return item;
}

function health(backend: SlashingBackend): Promise<void> {
  return backend.checkHealth(new AbortController().signal);
}

describe('a record that was altered', () => {
  /** Renewed all the time: first records of keys do not ask for it. */
  const INCARNATION = 'another incarnation';
  const alterations: [name: string, change: (item: Item) => Item][] = [
    ['a lowered floor', (item) => ({ ...item, floor_slot: { N: '5' } })],
    [
      'a removed floor',
      ({ floor_slot: _slot, floor_source_epoch: _source, floor_target_epoch: _target, ...rest }) => rest,
    ],
    ['half a floor', ({ floor_slot: _slot, ...rest }) => rest],
    [INCARNATION, (item) => ({ ...item, incarnation: { S: 'x' } })],
    ['another id', (item) => ({ ...item, store_id: { S: '0'.repeat(32) } })],
    ['another region', (item) => ({ ...item, store_region: { S: 'us-east-1' } })],
    ['a removed id', ({ store_id: _id, ...rest }) => rest],
  ];

  it.each(alterations)(
    '%s: nobody opens the store, and its health, identity and first records fail',
    async (name, change) => {
      const backend = await open();
      await checkOne(backend, block(1, 1, 'a'));
      await backend.jump(FLOOR);
      const damaged = change(await record());
      await world.tables.putItem(world.tableName, damaged);
      const integrity = { reason: 'slashing_integrity' };
      await expect(open({ table: world.tableName })).rejects.toMatchObject(integrity);
      await expect(health(backend)).rejects.toMatchObject(integrity);
      await expect(backend.identity()).rejects.toMatchObject(integrity);
      await expect(backend.incarnate('', 'x')).rejects.toMatchObject(integrity);
      await expect(backend.jump(FLOOR)).rejects.toMatchObject(integrity);
      await expect(Array.fromAsync(backend.exportHistories())).rejects.toMatchObject(integrity);
      if (name !== INCARNATION) await expect(checkOne(backend, block(9, 5000, 'a'))).rejects.toMatchObject(integrity);
      expect(await record()).toEqual(damaged);
    },
  );
});

describe('a record that is gone', () => {
  it('stops the start where keys have records, and says what to do', async () => {
    await checkOne(await open(), block(1, 10, 'a'));
    await world.tables.deleteItem(world.tableName, NETWORK_PARTITION);
    await expect(open({ table: world.tableName })).rejects.toThrow(/lost its item NETWORK.*strongroom slashing jump/);
    expect(await world.tables.item(world.tableName, NETWORK_PARTITION)).toBeUndefined();
  });

  it('is made anew by a jump, with its floor, under another id; nothing is signed before', async () => {
    const before = await open();
    const { id } = await before.identity();
    const known = await record();
    await checkOne(before, block(1, 10, 'a'));
    await world.tables.deleteItem(world.tableName, NETWORK_PARTITION);
    const jumper = await open({ table: world.tableName, isForJump: true });
    await expect(checkOne(jumper, block(2, 2000, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await expect(jumper.endTenures([])).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    const after = await jumper.jump(FLOOR);
    expect(after).toMatchObject({ floor: FLOOR, incarnation: NO_INCARNATION });
    expect(after.id).not.toBe(id);
    expect(verdictName(await checkOne(jumper, block(2, 1000, 'a')))).toBe('block_below_low_water_mark');
    // The signer that knew the lost one stops: the floor, and the id of the store, are not those that it knows.
    await expect(health(before)).rejects.toThrow(/another store/);
    await world.tables.putItem(world.tableName, known);
    await expect(health(before)).rejects.toThrow(/another store/);
    await expect(checkOne(before, block(1, 5000, 'b'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
  });

  it('is not made by a jump of a signer that knew it', async () => {
    const backend = await open();
    await world.tables.deleteItem(world.tableName, NETWORK_PARTITION);
    await expect(backend.jump(FLOOR)).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await expect(checkOne(backend, block(1, 5, 'first'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    expect(await world.tables.item(world.tableName, NETWORK_PARTITION)).toBeUndefined();
  });
});

it('of incarnations one is written each time while 30 % of all requests fail, and nobody loses a raised floor', async () => {
  const signers = [await open()];
  while (signers.length < 3) signers.push(await open({ table: world.tableName }));
  const { dropAnswer, resetBefore, resetAfter, internalErrorAfterApplying, transactionConflict } = FAULTS;
  const faults = [dropAnswer, resetBefore, resetAfter, internalErrorAfterApplying, transactionConflict];
  world.proxy.setRule(randomFaults(11, 0.3, faults));
  const written: string[] = [];
  await Promise.all(
    signers.map(async (signer, turn) => {
      for (let round = 0; round < 20; round++) {
        const { incarnation } = await signer.identity().catch(() => ({ incarnation: 'unknown' }));
        const next = `${turn} ${round}`;
        if (await signer.incarnate(incarnation, next).catch(() => false)) written.push(incarnation);
        if (round === 10 + turn) await signer.jump({ ...FLOOR, slot: 1000 + turn }).catch(() => undefined);
      }
    }),
  );
  world.proxy.setRule(undefined);
  expect(world.proxy.faults).toBeGreaterThan(20);
  // Two never replaced the same one.
  expect(new Set(written).size).toBe(written.length);
  expect(written.length).toBeGreaterThan(5);
  const [signer] = signers;
  await signer?.jump(FLOOR);
  const { floor } = (await signer?.identity()) ?? {};
  expect(floor?.slot).toBeGreaterThanOrEqual(1000);
});

it('a process keeps to a floor that it has read, though the table has an older record again', async () => {
  const backend = await open();
  await checkOne(backend, vote(1, 3, 4, 'a'));
  const older = await record();
  await backend.jump(FLOOR);
  await world.tables.putItem(world.tableName, older);
  expect((await backend.identity()).floor).toBeNull();
  const below = await checkOne(backend, vote(2, 5, 6, 'new key'));
  expect(verdictName(below)).toBe('source_below_low_water_mark');
  expect(verdictName(await checkOne(backend, vote(2, 30, 32, 'new key')))).toBe('slashing_rollback');
  await backend.jump({ slot: 1, sourceEpoch: 1, targetEpoch: 1 });
  expect((await backend.identity()).floor).toEqual(FLOOR);
  expect(verdictName(await checkOne(backend, vote(2, 30, 32, 'new key')))).toBe('safe');
});
