// What is noticed when somebody who can write a DynamoDB slashing table puts older items back, or takes them away, and
// what is not. docs/security.md says the same in words; each sentence there has its test here.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import type { Item } from '../../../signer/aws/dynamodb.ts';
import { markPartition, NETWORK_PARTITION } from '../../../signer/slashing/dynamodb/tables/items.ts';
import { NO_INCARNATION, nextIncarnation } from '../../../signer/slashing/incarnation.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { unrestrained } from '../../support/restrained.ts';
import { block, checkOne, publicKeyOf, quietLog, verdictName, vote } from '../../support/slashing.ts';
import { type SlashingTables, startSlashingTables } from '../../support/slashing-dynamodb.ts';

const FLOOR = { slot: 1000, sourceEpoch: 30, targetEpoch: 31 };
const VOTE = markPartition({ kind: 'attestation', publicKey: publicKeyOf(1) });
const BLOCK = markPartition({ kind: 'block', publicKey: publicKeyOf(1) });

let tables: SlashingTables;
let tableName: string;
const protections: SlashingProtection[] = [];

beforeAll(async () => {
  tables = await startSlashingTables();
});

afterEach(async () => {
  for (const protection of protections.splice(0)) await protection.close();
});

afterAll(() => tables?.close());

const backends = new WeakMap<SlashingProtection, SlashingBackend>();

function backendOf(protection: SlashingProtection): SlashingBackend {
  const backend = backends.get(protection);
  if (backend === undefined) throw new Error('not a replica of this test');
  return backend;
}

/** A replica: a backend, and the memory of what it signed. */
async function replica(table?: string): Promise<SlashingProtection> {
  tableName = table ?? (await tables.create());
  const backend: SlashingBackend = await tables.open(tableName);
  const protection = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
  protections.push(protection);
  backends.set(protection, backend);
  return protection;
}

async function outcome(signer: SlashingProtection, message: SlashableMessage): Promise<string> {
  return signer.check(message).then(
    (answer) => verdictName(answer),
    (error: { reason?: string }) => `503 ${error.reason}`,
  );
}

async function itemAt(pk: string): Promise<Item> {
  const item = await tables.item(tableName, pk);
  if (item === undefined) throw new Error(`no item at ${pk}`);
  return item;
}

describe('an older item, with its good code', () => {
  it('is noticed by the replica that signed since, and by no other', async () => {
    const signer = await replica();
    const other = await replica(tableName);
    await outcome(signer, vote(1, 3, 4, 'a'));
    const older = await itemAt(VOTE);
    await outcome(signer, vote(1, 4, 5, 'b'));
    await tables.putItem(tableName, older);
    expect(await outcome(signer, vote(1, 4, 5, 'rival'))).toBe('503 slashing_rollback');
    expect(await outcome(signer, vote(1, 5, 6, 'later'))).toBe('503 slashing_rollback');
    // Not noticed: the other replica has only the table, and a slashable vote is signed.
    expect(await outcome(other, vote(1, 4, 5, 'rival'))).toBe('safe');
  });

  it('is noticed by a replica that has read the newer one since, though it did not sign it', async () => {
    const signer = await replica();
    const other = await replica(tableName);
    await outcome(signer, vote(1, 3, 4, 'a'));
    const older = await itemAt(VOTE);
    await outcome(signer, vote(1, 4, 5, 'b'));
    expect(await outcome(other, vote(1, 4, 5, 'rival'))).toBe('double_vote');
    await tables.putItem(tableName, older);
    expect(await outcome(other, vote(1, 4, 5, 'rival'))).toBe('503 slashing_rollback');
  });

  it('signs nothing up to the floor that the replica has read', async () => {
    const signer = await replica();
    const other = await replica(tableName);
    await outcome(signer, vote(1, 3, 4, 'a'));
    const older = await itemAt(VOTE);
    await outcome(signer, vote(1, 29, 30, 'b'));
    await backendOf(signer).jump(FLOOR);
    await backendOf(other).identity();
    await tables.putItem(tableName, older);
    expect(await outcome(other, vote(1, 29, 30, 'rival'))).toBe('source_below_low_water_mark');
    expect(await outcome(await replica(tableName), vote(1, 30, 31, 'rival'))).toBe('target_below_low_water_mark');
    expect(await outcome(other, vote(1, 30, 32, 'later'))).toBe('safe');
  });

  it('of a key before it was retired makes it sign again: not noticed', async () => {
    const signer = await replica();
    await outcome(signer, vote(1, 3, 4, 'a'));
    const older = await itemAt(VOTE);
    await backendOf(signer).endTenures([publicKeyOf(1)]);
    expect(await outcome(signer, vote(1, 4, 5, 'b'))).toBe('key_retired');
    await tables.putItem(tableName, older);
    expect(await outcome(signer, vote(1, 4, 5, 'b'))).toBe('safe');
  });
});

describe('an item that is gone', () => {
  it('is noticed by the replica that signed, and by no other', async () => {
    const signer = await replica();
    const other = await replica(tableName);
    await outcome(signer, block(1, 10, 'a'));
    await tables.deleteItem(tableName, BLOCK);
    expect(await outcome(signer, block(1, 11, 'b'))).toBe('503 slashing_rollback');
    // Not noticed.
    expect(await outcome(other, block(1, 10, 'rival'))).toBe('safe');
  });

  it('signs nothing up to the floor of the store', async () => {
    const signer = await replica();
    await outcome(signer, block(1, 10, 'a'));
    await backendOf(signer).jump(FLOOR);
    await tables.deleteItem(tableName, BLOCK);
    expect(await outcome(await replica(tableName), block(1, 10, 'rival'))).toBe('block_below_low_water_mark');
  });
});

describe('a whole table that is an older copy of itself', () => {
  it('has an earlier incarnation in its record, and an emptied one another id, for whoever keeps these elsewhere', async () => {
    const signer = await replica();
    await outcome(signer, vote(1, 3, 4, 'a'));
    const copy = [await itemAt(VOTE), await itemAt(NETWORK_PARTITION)];
    await outcome(signer, vote(1, 4, 5, 'b'));
    const renewed = nextIncarnation(NO_INCARNATION, null);
    expect(await backendOf(signer).incarnate(NO_INCARNATION, renewed)).toBe(true);
    for (const item of copy) await tables.putItem(tableName, item);
    const started = await replica(tableName);
    const before = await backendOf(started).identity();
    expect(before.incarnation).toBe(NO_INCARNATION);
    // Not noticed by the store itself: a replica that starts knows no better.
    expect(await outcome(started, vote(1, 4, 5, 'rival'))).toBe('safe');

    for (const pk of [VOTE, NETWORK_PARTITION]) await tables.deleteItem(tableName, pk);
    expect((await backendOf(await replica(tableName)).identity()).id).not.toBe(before.id);
  });

  it('does not take a process back: it keeps the highest floor that it has read', async () => {
    const signer = await replica();
    const older = await itemAt(NETWORK_PARTITION);
    await backendOf(signer).jump(FLOOR);
    await tables.putItem(tableName, older);
    expect(await outcome(signer, block(2, 1000, 'a'))).toBe('block_below_low_water_mark');
    expect(await outcome(signer, block(2, 1001, 'a'))).toBe('503 slashing_rollback');
  });
});

it('an emptied table whose record is left alone lets another replica sign again: not noticed', async () => {
  const signer = await replica();
  await outcome(signer, vote(1, 3, 4, 'a'));
  await tables.deleteItem(tableName, VOTE);
  const { id } = await backendOf(signer).identity();
  const other = await replica(tableName);
  expect((await backendOf(other).identity()).id).toBe(id);
  expect(verdictName(await checkOne(backendOf(other), vote(1, 3, 4, 'rival')))).toBe('safe');
});
