// Jumps of a DynamoDB table: the floor first, then the item of every key; crashes in between, first records that race
// with it, and items that cannot be raised.

import { describe, expect, it } from 'vitest';
import { markPartition } from '../../../signer/slashing/dynamodb/tables/items.ts';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import { nextIncarnation } from '../../../signer/slashing/incarnation.ts';
import type { SlashableMessage, SlashingBackend, StoreFloor } from '../../../signer/slashing/types.ts';
import { FAULTS } from '../../support/fault-proxy.ts';
import { recordingLog } from '../../support/recording-log.ts';
import {
  block,
  checkOne,
  collect,
  history,
  inTenure,
  publicKeyOf,
  reinstate,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { outcome, SlashingTablesBehindProxy, VOTE } from '../../support/slashing-dynamodb-world.ts';

const FLOOR: StoreFloor = { slot: 1000, sourceEpoch: 30, targetEpoch: 31 };
const MANY = 700;

const world = new SlashingTablesBehindProxy();
const { open } = world;

/** Not seen by the proxy. */
function openBeside(): Promise<SlashingBackend> {
  return open({ table: world.tableName, endpoint: world.tables.server.endpoint });
}

async function importKeys(backend: SlashingBackend, count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, key) => history(key, [[10, null]], [[3, 4, null]]));
  await backend.importHistories(stream(keys));
}

describe('the items of keys', () => {
  it('are raised over all pages of the table, for a signer that never reads the record again', async () => {
    const backend = await open();
    await importKeys(backend, MANY);
    const signer = await openBeside();
    expect(await outcome(signer, block(0, 11, 'warm'))).toBe('safe');
    await backend.jump(FLOOR);
    for (const key of [0, 1, MANY - 1]) {
      expect(await outcome(signer, block(key, 1000, 'x'))).toBe('block_below_low_water_mark');
      expect(await outcome(signer, vote(key, 29, 40, 'x'))).toBe('source_below_low_water_mark');
      expect(await outcome(signer, vote(key, 30, 31, 'x'))).toBe('target_below_low_water_mark');
    }
    const targets = (await collect(signer.exportHistories())).map((one) => one.attestations[0]?.targetEpoch);
    expect(targets).toEqual(Array(MANY).fill(31));
  });

  it('remember what was signed, for a floor that is lowered, until more is signed', async () => {
    const backend = await open();
    await checkOne(backend, vote(1, 3, 4, 'a'));
    await backend.jump(FLOOR);
    await backend.jump({ ...FLOOR, targetEpoch: 40 });
    expect(await world.tables.item(world.tableName, VOTE)).toMatchObject({
      target_epoch: { N: '40' },
      signed_target_epoch: { N: '4' },
      signed_source_epoch: { N: '3' },
    });
    await backend.importHistories(stream([history(1, [], [[5, 6, null]]), history(2, [[70, null]], [])]));
    expect(await outcome(backend, vote(1, 30, 41, 'b'))).toBe('safe');
    expect(await world.tables.item(world.tableName, VOTE)).not.toHaveProperty('signed_target_epoch');
  });

  it('that fail their check stay as they are, refuse everything, and are logged', async () => {
    const log = recordingLog();
    const backend = await open({ log });
    await importKeys(backend, 3);
    const damaged = { ...(await world.tables.item(world.tableName, VOTE)), target_epoch: { N: '2' } };
    await world.tables.putItem(world.tableName, damaged);
    await backend.jump(FLOOR);
    expect(await world.tables.item(world.tableName, VOTE)).toEqual(damaged);
    expect(await outcome(backend, vote(1, 50, 60, 'x'))).toBe('slashing_integrity');
    expect(await outcome(backend, vote(2, 30, 31, 'x'))).toBe('target_below_low_water_mark');
    const [, ...lines] = log.lines; // the first says that the store is new
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/not raised by a jump/)]);
  });

  it('that a signer raises meanwhile keep what it signed', async () => {
    const backend = await open();
    await importKeys(backend, 20);
    const signer = await openBeside();
    let isSigned = false;
    world.proxy.setRule(async ({ operation, body }) => {
      if (operation === 'PutItem' && body.includes(VOTE) && !isSigned) {
        isSigned = true;
        expect(await outcome(signer, vote(1, 50, 60, 'later'))).toBe('safe');
      }
      return undefined;
    });
    await backend.jump(FLOOR);
    expect(isSigned).toBe(true);
    expect(await outcome(backend, vote(1, 50, 60, 'later'))).toBe('repeat');
    expect(await outcome(backend, vote(1, 50, 60, 'rival'))).toBe('double_vote');
  });
});

describe('a jump that is disturbed', () => {
  it('has only refused more, and can be repeated', async () => {
    const backend = await open({ client: { maxAttempts: 1 } });
    await importKeys(backend, 100);
    // Whether the votes of the keys are scanned first or among the blocks: the floor, 100 items and some more.
    let writes = 0;
    world.proxy.setRule(({ operation }) =>
      operation === 'PutItem' && ++writes > 120 ? FAULTS.resetBefore : undefined,
    );
    await expect(backend.jump(FLOOR)).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    world.proxy.setRule(undefined);
    // Who reads the floor obeys it, whatever the items say: the process itself, and whoever starts now.
    for (const signer of [backend, await openBeside()]) {
      for (let key = 0; key < 100; key++)
        expect(await outcome(signer, block(key, 1000, 'x'))).not.toMatch(/safe|repeat/);
    }
    const slots = async () => {
      const items = Array.from({ length: 100 }, (_, key) =>
        markPartition({ kind: 'block', publicKey: publicKeyOf(key) }),
      );
      return Promise.all(items.map(async (pk) => (await world.tables.item(world.tableName, pk))?.['slot']?.N));
    };
    expect(new Set(await slots())).toEqual(new Set(['10', '1000']));
    await backend.jump({ slot: 0, sourceEpoch: 0, targetEpoch: 0 });
    expect(new Set(await slots())).toEqual(new Set(['1000']));
  });

  it('by throttling takes its time and succeeds', async () => {
    const backend = await open({ client: { maxAttempts: 1 } });
    await importKeys(backend, 30);
    let throttled = 0;
    world.proxy.setRule(({ operation, body }) =>
      operation === 'PutItem' && body.includes('signed_') && throttled++ < 40 ? FAULTS.throttled : undefined,
    );
    await backend.jump(FLOOR);
    expect(throttled).toBeGreaterThan(40);
    expect(await outcome(backend, block(29, 1000, 'x'))).toBe('block_below_low_water_mark');
  });
});

describe('a first record', () => {
  const raced: readonly (readonly [string, SlashableMessage, string])[] = [
    ['below the floor is refused', block(7, 900, 'a'), 'block_below_low_water_mark'],
    ['beyond it is signed', block(7, 1001, 'a'), 'safe'],
    ['of a vote below it is refused', vote(7, 29, 40, 'a'), 'source_below_low_water_mark'],
  ];
  it.each(raced)('whose key is judged while a jump comes first: %s', async (_what, message, expected) => {
    const signer = await open();
    const jumper = await openBeside();
    let hasJumped = false;
    world.proxy.setRule(async ({ operation }) => {
      if (operation === 'TransactWriteItems' && !hasJumped) {
        hasJumped = true;
        await jumper.jump(FLOOR);
      }
      return undefined;
    });
    expect(await outcome(signer, message)).toBe(expected);
    expect(hasJumped).toBe(true);
  });

  it('is not kept from being written by other signers that use the store', async () => {
    const signer = await open();
    const other = await openBeside();
    world.proxy.setRule(async ({ operation }) => {
      if (operation === 'TransactWriteItems') await renew(other);
      return undefined;
    });
    expect(await outcome(signer, block(7, 1, 'a'))).toBe('safe');
  });

  it('of a reinstated key that had none is judged by the floor too', async () => {
    const signer = await open();
    await signer.endTenures([publicKeyOf(7)]);
    await (await openBeside()).jump(FLOOR);
    await reinstate(signer, [publicKeyOf(7)]);
    expect(await outcome(signer, inTenure(2, block(7, 1000, 'a')))).toBe('block_below_low_water_mark');
    expect(await outcome(signer, inTenure(2, block(7, 1001, 'a')))).toBe('safe');
  });

  it('of an import that a jump overtakes is raised to the floor', async () => {
    const backend = await open();
    const jumper = await openBeside();
    let hasJumped = false;
    world.proxy.setRule(async ({ operation }) => {
      if (operation === 'TransactWriteItems' && !hasJumped) {
        hasJumped = true;
        await jumper.jump(FLOOR);
      }
      return undefined;
    });
    await importKeys(backend, 3);
    const fresh = await openBeside();
    const [exported] = await collect(fresh.exportHistories([publicKeyOf(2)]));
    expect(exported).toMatchObject({ blocks: [{ slot: 1000 }], attestations: [{ sourceEpoch: 30, targetEpoch: 31 }] });
    expect(await world.tables.item(world.tableName, VOTE)).toMatchObject({ target_epoch: { N: '31' } });
  });
});

it('after a table went back in time, a jump makes its keys sign again, where the process knows no more', async () => {
  const backend = await open();
  await checkOne(backend, vote(1, 3, 4, 'a'));
  const older = await world.tables.item(world.tableName, VOTE);
  await checkOne(backend, vote(1, 4, 5, 'b'));
  await world.tables.putItem(world.tableName, older ?? {});
  await world.tables.deleteItem(world.tableName, markPartition({ kind: 'block', publicKey: publicKeyOf(1) }));
  expect(await outcome(backend, vote(1, 30, 32, 'c'))).toBe('slashing_rollback');
  await (await openBeside()).jump(FLOOR);
  const floors = { slot: 900, sourceEpoch: 4, targetEpoch: 5 };
  for (const message of [vote(1, 30, 32, 'c'), block(1, 1001, 'c')]) {
    expect((await backend.checkAndRecord([message], [floors])).map(verdictName)).toEqual(['safe']);
  }
  const ahead = { ...NO_MARKS, targetEpoch: 33 };
  expect((await backend.checkAndRecord([vote(1, 31, 34, 'd')], [ahead])).map(verdictName)).toEqual([
    'slashing_rollback',
  ]);
});

async function renew(backend: SlashingBackend): Promise<void> {
  const { incarnation } = await backend.identity();
  expect(await backend.incarnate(incarnation, nextIncarnation(incarnation, null))).toBe(true);
}
