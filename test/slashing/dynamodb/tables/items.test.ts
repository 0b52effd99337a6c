// What the DynamoDB backend makes of a table that somebody altered, emptied, rolled back, or gave it by mistake.

import { describe, expect, it } from 'vitest';
import type { Item } from '../../../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../../../signer/aws/table-definition.ts';
import { markPartition } from '../../../../signer/slashing/dynamodb/tables/items.ts';
import { NO_MARKS } from '../../../../signer/slashing/history/head.ts';
import type { SlashableMessage, SlashingBackend } from '../../../../signer/slashing/types.ts';
import {
  block,
  checkOne,
  collect,
  history,
  OTHER_ROOT,
  publicKeyOf,
  stream,
  verdictName,
  vote,
} from '../../../support/slashing.ts';
import { BLOCK, SlashingTablesBehindProxy, VOTE } from '../../../support/slashing-dynamodb-world.ts';

const world = new SlashingTablesBehindProxy();
const { open, itemAt } = world;

async function verdict(backend: SlashingBackend, message: SlashableMessage): Promise<string> {
  return verdictName(await checkOne(backend, message));
}

async function trips(work: () => Promise<unknown>): Promise<number> {
  const before = world.proxy.requests;
  await work();
  return world.proxy.requests - before;
}

describe('an item that was altered', () => {
  const alterations: [name: string, pk: string, change: (item: Item) => Item][] = [
    ['a lowered slot', BLOCK, (item) => ({ ...item, slot: { N: '5' } })],
    ['another root', BLOCK, (item) => ({ ...item, signing_root: { S: `0x${'77'.repeat(32)}` } })],
    ['a removed root', BLOCK, ({ signing_root: _root, ...rest }) => rest],
    ['a removed code', BLOCK, ({ integrity: _code, ...rest }) => rest],
    ['a code of zeros', BLOCK, (item) => ({ ...item, integrity: { S: `0x${'00'.repeat(16)}` } })],
    ['a slot that is no number', BLOCK, (item) => ({ ...item, slot: { S: '10' } })],
    ['a slot that is no safe integer', BLOCK, (item) => ({ ...item, slot: { N: '9007199254740992' } })],
    ['a lowered target', VOTE, (item) => ({ ...item, target_epoch: { N: '2' } })],
    ['a lowered source', VOTE, (item) => ({ ...item, source_epoch: { N: '0' } })],
  ];

  it.each(alterations)(
    '%s: every request of that key is 503, in every process, and nothing is overwritten',
    async (_name, pk, change) => {
      const writer = await open();
      const newcomer = await open({ table: world.tableName });
      await checkOne(writer, block(1, 10, 'a'));
      await checkOne(writer, vote(1, 3, 4, 'a'));
      const damaged = change(await itemAt(pk));
      await world.tables.putItem(world.tableName, damaged);
      const isBlock = pk === BLOCK;
      for (const backend of [writer, newcomer]) {
        for (const step of [0, 1, -4, 50]) {
          const message = isBlock ? block(1, 10 + step, 'b') : vote(1, 3, 8 + step, 'b');
          expect(await verdict(backend, message)).toBe('slashing_integrity');
        }
        const signed = backend.signedBlockRoot(publicKeyOf(1), 10);
        if (isBlock) await expect(signed).rejects.toMatchObject({ reason: 'slashing_integrity' });
        else expect(await signed).not.toBeNull();
        const own = isBlock ? block(1, 10, 'a') : vote(1, 3, 4, 'a');
        expect(await verdict(backend, own)).toBe('slashing_integrity');
        expect(await verdict(backend, isBlock ? vote(1, 3, 4, 'a') : block(1, 10, 'a'))).toBe('repeat');
        await expect(collect(backend.exportHistories())).rejects.toMatchObject({ reason: 'slashing_integrity' });
        await expect(
          backend.importHistories(stream([history(1, [[99, null]], [[9, 99, null]]), history(2, [[1, null]], [])])),
        ).rejects.toMatchObject({ reason: 'slashing_integrity' });
      }
      expect(await itemAt(pk)).toEqual(damaged);
      expect(
        await world.tables.item(world.tableName, markPartition({ kind: 'block', publicKey: publicKeyOf(2) })),
      ).toBeUndefined();
    },
  );

  it('an item of another key, or of the other kind, does not pass for this one', async () => {
    const backend = await open();
    await checkOne(backend, block(1, 10, 'a'));
    await checkOne(backend, block(2, 20, 'a'));
    const other = await itemAt(markPartition({ kind: 'block', publicKey: publicKeyOf(2) }));
    await world.tables.putItem(world.tableName, { ...other, pk: { S: BLOCK } });
    expect(await verdict(backend, block(1, 30, 'b'))).toBe('slashing_integrity');
    expect(await verdict(backend, block(2, 30, 'b'))).toBe('safe');
  });
});

describe('an item that went back in time', () => {
  it('its earlier state, with its good code, is noticed by a process that knows better', async () => {
    const backend = await open();
    await checkOne(backend, vote(1, 3, 4, 'a'));
    const earlier = await itemAt(VOTE);
    await checkOne(backend, vote(1, 4, 5, 'b'));
    await world.tables.putItem(world.tableName, earlier);
    for (const message of [vote(1, 4, 5, 'c'), vote(1, 5, 6, 'c'), vote(1, 3, 4, 'a')]) {
      expect(await verdict(backend, message)).toBe('slashing_rollback');
    }
    expect(await itemAt(VOTE)).toEqual(earlier);
  });

  it('and by a process that was told by its memory only', async () => {
    const writer = await open();
    await checkOne(writer, vote(1, 3, 4, 'a'));
    const told = await open({ table: world.tableName });
    const floors = { ...NO_MARKS, sourceEpoch: 4, targetEpoch: 5 };
    expect((await told.checkAndRecord([vote(1, 5, 6, 'c')], [floors])).map(verdictName)).toEqual(['slashing_rollback']);
  });

  it('an item that was deleted is missed', async () => {
    const backend = await open();
    await checkOne(backend, block(1, 10, 'a'));
    await world.tables.deleteItem(world.tableName, BLOCK);
    expect(await verdict(backend, block(1, 11, 'b'))).toBe('slashing_rollback');
    expect(await verdict(backend, block(1, 10, 'a'))).toBe('slashing_rollback');
    expect(await world.tables.item(world.tableName, BLOCK)).toBeUndefined();
  });
});

describe('round trips', () => {
  it('a check is one while nobody else signs for the key, and two after somebody did, and the first time', async () => {
    const backend = await open();
    const other = await open({ table: world.tableName });
    expect(await trips(() => checkOne(backend, vote(1, 0, 1, 'a')))).toBe(2);
    expect(await trips(() => checkOne(backend, vote(1, 1, 2, 'a')))).toBe(1);
    expect(await trips(() => checkOne(other, vote(1, 2, 3, 'a')))).toBe(2);
    expect(await trips(() => checkOne(backend, vote(1, 3, 4, 'a')))).toBe(2);
    expect(await trips(() => checkOne(backend, vote(1, 4, 5, 'a')))).toBe(1);
    expect(await trips(() => checkOne(backend, vote(1, 4, 5, 'refused')))).toBe(1);
  });
});

describe('a table that is not the right one stops the start', () => {
  it('none of that name: the message says how to make it', async () => {
    await expect(world.tables.open('absent')).rejects.toThrow(/does not exist.*strongroom setup tables/);
  });

  it('another network', async () => {
    await open();
    await expect(world.tables.open(world.tableName, { root: OTHER_ROOT })).rejects.toThrow(
      /another network, 0x.*genesis validators root/,
    );
  });

  it('another master key', async () => {
    await open();
    const integrityKey = Buffer.alloc(32, 8);
    await expect(world.tables.open(world.tableName, { integrityKey })).rejects.toThrow(/written with another key/);
  });

  it('another shape of key', async () => {
    const name = 'two-part-key';
    await world.tables.server.createTable({
      ...tableDefinition(name),
      AttributeDefinitions: ['pk', 'sk'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
    });
    await expect(world.tables.open(name)).rejects.toThrow(/another shape/);
  });

  it('many that open a new one at once all succeed, and bind it once', async () => {
    const name = await world.tables.create();
    const opened = await Promise.all(Array.from({ length: 8 }, () => world.tables.open(name)));
    for (const backend of opened) await backend.close();
    await expect(world.tables.open(name, { root: OTHER_ROOT })).rejects.toThrow(
      /another network, 0x.*genesis validators root/,
    );
  });

  it('a table whose binding vanishes is unhealthy', async () => {
    const backend = await open();
    await world.tables.deleteItem(world.tableName, 'NETWORK');
    await expect(backend.checkHealth(new AbortController().signal)).rejects.toMatchObject({
      reason: 'slashing_unavailable',
    });
  });
});

it('the status counts what is there', async () => {
  const backend = await open();
  await checkOne(backend, block(1, 10, 'a'));
  await checkOne(backend, vote(1, 1, 2, 'a'));
  await checkOne(backend, vote(2, 1, 2, 'a'));
  expect(await backend.status()).toMatchObject({ validators: 2, blocks: 1, attestations: 2 });
});

it('an import counts what it brought and what contradicts', async () => {
  const backend = await open();
  const file = [history(1, [[10, 'a']], [[1, 2, 'a']]), history(2, [[5, null]], [])];
  const sum = { validators: 2, blocks: 2, attestations: 1, alreadyPresent: 0, conflicts: 0, conflicting: [] };
  expect(await backend.importHistories(stream(file))).toEqual(sum);
  expect(await backend.importHistories(stream(file))).toEqual({ ...sum, alreadyPresent: 3 });
  const contradicting = [
    history(
      3,
      [
        [10, 'a'],
        [10, 'b'],
      ],
      [
        [1, 9, 'a'],
        [2, 3, 'b'],
      ],
    ),
  ];
  expect(await backend.importHistories(stream(contradicting))).toMatchObject({
    validators: 1,
    conflicts: 2,
    conflicting: [
      { publicKey: publicKeyOf(3), slot: 10 },
      { publicKey: publicKeyOf(3), sourceEpoch: 2, targetEpoch: 3 },
    ],
  });
  expect(await collect(backend.exportHistories([publicKeyOf(3)]))).toEqual([history(3, [[10, null]], [[2, 9, null]])]);
});
