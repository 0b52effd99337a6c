// Somebody who can write the tables but has no key (a leaked password of the signer's role, a database administrator):
// what they would have to do to free a slot or a target that was signed, and what is noticed of it.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { openDoubts } from '../../../signer/slashing/doubt/doubts.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import { inDoubt } from '../../../signer/slashing/restraints.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { unrestrained } from '../../support/restrained.ts';
import {
  block,
  checkOne,
  collect,
  history,
  publicKeyOf,
  quietLog,
  retiredKeys,
  rootOf,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

const FAR = 1_000_000;

let server: PostgresServer;
let database: string;
let backend: SlashingBackend;
const opened: SlashingBackend[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

beforeEach(async () => {
  database = await server.createDatabase();
  backend = await open();
});

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** Also what a process that starts now knows. */
async function open(): Promise<SlashingBackend> {
  const one = await openTestBackend(server.url(database));
  opened.push(one);
  return one;
}

const sql = (text: string, values: unknown[] = []) => server.query(database, text, values);
const idOf = (key: number) =>
  `(SELECT id FROM strongroom.validators WHERE public_key = decode('${publicKeyOf(key).slice(2)}', 'hex'))`;

/** Rows of a key as they are now, to be put back later with the code that they have. */
async function keep(key: number): Promise<() => Promise<void>> {
  await sql('DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept');
  await sql(`CREATE TABLE kept.heads AS SELECT * FROM strongroom.validators WHERE id = ${idOf(key)}`);
  for (const table of ['blocks', 'attestations']) {
    await sql(`CREATE TABLE kept.${table} AS SELECT * FROM strongroom.${table} WHERE validator_id = ${idOf(key)}`);
  }
  const columns = (
    await sql(
      `SELECT string_agg(column_name, ', ') AS names FROM information_schema.columns
     WHERE table_schema = 'strongroom' AND table_name = 'validators' AND column_name <> 'id'`,
    )
  )[0]?.['names'];
  return async () => {
    for (const table of ['blocks', 'attestations']) {
      await sql(`DELETE FROM strongroom.${table} WHERE validator_id = ${idOf(key)}`);
      await sql(`INSERT INTO strongroom.${table} SELECT * FROM kept.${table}`);
    }
    await sql(
      `UPDATE strongroom.validators SET (${columns}) = (SELECT ${columns} FROM kept.heads) WHERE id = ${idOf(key)}`,
    );
  };
}

async function verdictsOf(messages: readonly SlashableMessage[], one = backend): Promise<string[]> {
  const names: string[] = [];
  for (const message of messages) names.push(verdictName(await checkOne(one, message)));
  return names;
}

describe('a row in the way is deleted, and a pruned one put in its place, so that the counts fit', () => {
  beforeEach(async () => {
    for (const slot of [10, 20]) await checkOne(backend, block(1, slot, 'old'));
    for (const epoch of [3, 4]) await checkOne(backend, vote(1, epoch, epoch + 1, 'old'));
    await sql('CREATE SCHEMA pruned');
    for (const table of ['blocks', 'attestations']) {
      await sql(`CREATE TABLE pruned.${table} AS SELECT * FROM strongroom.${table}`);
    }
    for (const slot of [FAR, FAR + 10, FAR + 20]) await checkOne(backend, block(1, slot, 'new'));
    for (const epoch of [FAR, FAR + 2, FAR + 4]) await checkOne(backend, vote(1, epoch, epoch + 1, 'new'));
    while ((await backend.pruneStep(100)) > 0);
    await sql(`DELETE FROM strongroom.blocks WHERE slot = ${FAR + 10}`);
    await sql(`DELETE FROM strongroom.attestations WHERE target_epoch = ${FAR + 3}`);
    for (const table of ['blocks', 'attestations']) {
      const oldest = table === 'blocks' ? 'slot = 10' : 'target_epoch = 4';
      await sql(`INSERT INTO strongroom.${table} SELECT * FROM pruned.${table} WHERE ${oldest}`);
    }
  });

  it('is noticed by every message that rests on the history, in an export, and by pruning', async () => {
    const rivals = [
      block(1, FAR + 10, 'rival'),
      vote(1, FAR + 2, FAR + 3, 'rival'),
      vote(1, FAR + 1, FAR + 4, 'rival'),
    ];
    for (const one of [backend, await open()]) {
      expect(await verdictsOf(rivals, one)).toEqual(rivals.map(() => 'slashing_integrity'));
    }
    await expect(collect(backend.exportHistories())).rejects.toMatchObject({ reason: 'slashing_integrity' });
    const file = stream([history(1, [[FAR + 40, null]], [])]);
    await expect(backend.importHistories(file)).rejects.toMatchObject({ reason: 'slashing_integrity' });
    expect(await backend.pruneStep(100)).toBe(0);
  });

  it('nor is the pruned row a repeat', async () => {
    expect(await verdictsOf([block(1, 10, 'old'), vote(1, 3, 4, 'old')])).toEqual([
      'slashing_integrity',
      'slashing_integrity',
    ]);
  });
});

describe('all rows of a key are deleted', () => {
  const deleteEntries = async () => {
    for (const table of ['blocks', 'attestations'])
      await sql(`DELETE FROM strongroom.${table} WHERE validator_id = ${idOf(1)}`);
  };
  const rivals = [block(1, 10, 'rival'), vote(1, 3, 4, 'rival'), block(1, 11, 'next'), vote(1, 4, 5, 'next')];

  beforeEach(async () => {
    for (const key of [1, 2]) {
      await checkOne(backend, block(key, 10, 'a'));
      await checkOne(backend, vote(key, 3, 4, 'a'));
    }
  });

  it('without its head: the key is damaged, the others go on', async () => {
    await deleteEntries();
    for (const one of [backend, await open()]) {
      expect(await verdictsOf(rivals, one)).toEqual(rivals.map(() => 'slashing_integrity'));
    }
    expect(await verdictsOf([block(2, 11, 'b')])).toEqual(['safe']);
  });

  it.each([
    ['with its head', ''],
    [
      'with its head, and a row of nothing put in the place of that',
      "INSERT INTO strongroom.validators (public_key, digests, code) VALUES (decode(repeat('ab', 48), 'hex'), '', '')",
    ],
  ])('%s: it is no new key, and no key is new until that is repaired', async (_name, replacement) => {
    await deleteEntries();
    await sql(`DELETE FROM strongroom.validators WHERE id = ${idOf(1)}; ${replacement}`);
    for (const one of [backend, await open()]) {
      expect(await verdictsOf(rivals, one)).toEqual(rivals.map(() => 'slashing_integrity'));
      expect(await verdictsOf([block(9, 1, 'new')], one)).toEqual(['slashing_integrity']);
      expect(await verdictsOf([block(2, 12, 'b')], one)).toEqual([one === backend ? 'safe' : 'repeat']);
    }
    const damaged = { reason: 'slashing_integrity' };
    await expect(collect(backend.exportHistories())).rejects.toMatchObject(damaged);
    await expect(collect(backend.exportHistories([publicKeyOf(1)]))).rejects.toMatchObject(damaged);
    expect(await collect(backend.exportHistories([publicKeyOf(2)]))).toHaveLength(1);
    await expect(backend.importHistories(stream([history(1, [[5, null]], [])]))).rejects.toMatchObject(damaged);
    await expect(backend.endTenures([publicKeyOf(1)])).rejects.toMatchObject(damaged);
  });
});

describe('a head is replaced by an older one of its key', () => {
  it('with the newer entries left: damage, for every process', async () => {
    await checkOne(backend, block(1, 10, 'a'));
    const restore = await keep(1);
    await checkOne(backend, block(1, 20, 'a'));
    await sql(`CREATE TABLE newer AS SELECT * FROM strongroom.blocks WHERE slot = 20`);
    await restore();
    await sql('INSERT INTO strongroom.blocks SELECT * FROM newer');
    for (const one of [backend, await open()]) {
      expect(await verdictsOf([block(1, 20, 'b'), block(1, 21, 'b')], one)).toEqual(
        Array(2).fill('slashing_integrity'),
      );
    }
  });

  it('with the newer entries deleted: a signer that made them notices; one that starts afterwards cannot', async () => {
    const signer = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
    await signer.check(block(1, 10, 'a'));
    const restore = await keep(1);
    await signer.check(block(1, 20, 'a'));
    await restore();
    await expect(signer.check(block(1, 21, 'b'))).rejects.toMatchObject({ reason: 'slashing_rollback' });
    // What docs/security.md says is not noticed: all rows of the key as they were at an earlier time, all of them
    // valid.
    expect(await verdictsOf([block(1, 20, 'b')], await open())).toEqual(['safe']);
  });

  it('an ended tenure cannot be taken away from a head', async () => {
    await backend.endTenures([publicKeyOf(1)]);
    await sql('UPDATE strongroom.validators SET tenure = 0');
    expect(await verdictsOf([block(1, 10, 'a')])).toEqual(['slashing_integrity']);
    await expect(retiredKeys(backend)).rejects.toMatchObject({ reason: 'slashing_integrity' });
  });
});

describe('the record of the store', () => {
  const FLOOR = { slot: 500, sourceEpoch: 14, targetEpoch: 15 };

  it.each([
    'UPDATE strongroom.store SET floor_slot = 1',
    'UPDATE strongroom.store SET floor_slot = NULL, floor_source_epoch = NULL, floor_target_epoch = NULL',
    'UPDATE strongroom.store SET revision = 9223372036854775807',
    "UPDATE strongroom.store SET incarnation = 'x'",
    'UPDATE strongroom.store SET keys = keys - 1',
    'UPDATE strongroom.store SET timeline = timeline + 1',
    'DELETE FROM strongroom.store',
  ])('is not believed when it was changed, and nothing is signed over it: %s', async (change) => {
    await backend.jump(FLOOR);
    await sql(change);
    const damaged = { reason: 'slashing_integrity' };
    await expect(checkOne(backend, block(1, 400, 'b'))).rejects.toMatchObject(damaged);
    await expect(backend.identity()).rejects.toMatchObject(damaged);
    await expect(open()).rejects.toMatchObject(damaged);
  });

  it('is missed by a signer that knows a later one: the floor is raised again before anything is signed', async () => {
    await checkOne(backend, block(1, 10, 'a'));
    await sql('CREATE TABLE older AS SELECT * FROM strongroom.store');
    const floors = { slot: 600, sourceEpoch: 17, targetEpoch: 18 };
    const bare = await openTestBackend(server.url(database));
    opened.push(bare);
    await bare.jump(FLOOR);
    const present = async () => floors;
    const doubts = openDoubts({ store: bare, present, onJump: () => undefined, log: quietLog });
    const raising = inDoubt(bare, doubts.settle);
    expect(await verdictsOf([block(2, 501, 'b')], raising)).toEqual(['safe']);
    await sql('DELETE FROM strongroom.store; INSERT INTO strongroom.store SELECT * FROM older');
    expect(await verdictsOf([block(1, 550, 'b')], raising)).toEqual(['block_below_low_water_mark']);
    expect((await raising.identity()).floor).toEqual(floors);
  });
});

it('a signing root that was put into a row, or taken from another key, is not believed as signed', async () => {
  await checkOne(backend, block(1, 10, 'a'));
  await checkOne(backend, block(2, 10, 'b'));
  expect(Buffer.from((await backend.signedBlockRoot(publicKeyOf(1), 10)) ?? [])).toEqual(rootOf('a'));
  const columns = 'signing_root, code';
  await sql(
    `UPDATE strongroom.blocks SET (${columns}) = (SELECT ${columns} FROM strongroom.blocks WHERE validator_id = ${idOf(2)})
     WHERE validator_id = ${idOf(1)}`,
  );
  await expect(backend.signedBlockRoot(publicKeyOf(1), 10)).rejects.toMatchObject({ reason: 'slashing_integrity' });
});
