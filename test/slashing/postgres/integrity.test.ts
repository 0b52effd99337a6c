// Rows that somebody changed behind the backend's back: the key answers 503, other keys go on, and no verdict rests on
// what is not as it was written.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { block, checkOne, collect, history, stream, verdictName, vote } from '../../support/slashing.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

let server: PostgresServer;
let database: string;
let backend: SlashingBackend;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

beforeEach(async () => {
  database = await server.createDatabase();
  backend = await openTestBackend(server.url(database));
  await recordHistories([1, 2, 3]);
});

afterEach(() => backend.close());

/** Blocks at 10, 20, 30 and votes 1→2, 3→4, 5→6 of each key. */
async function recordHistories(keys: readonly number[]): Promise<void> {
  const record = async (messages: readonly SlashableMessage[]) => {
    const verdicts = await backend.checkAndRecord(
      messages,
      messages.map(() => NO_MARKS),
    );
    expect(verdicts.map(verdictName)).toEqual(keys.map(() => 'safe'));
  };
  for (const slot of [10, 20, 30]) await record(keys.map((key) => block(key, slot, 'a')));
  for (const source of [1, 3, 5]) await record(keys.map((key) => vote(key, source, source + 1, 'v')));
}

const ofKey1 =
  "validator_id = (SELECT id FROM strongroom.validators WHERE public_key = decode(lpad('1', 96, '0'), 'hex'))";
const rowOfKey1 = "public_key = decode(lpad('1', 96, '0'), 'hex')";

// What is done to key 1, and the messages of it that a sound history would call safe, or refuse for another reason.
const damages: Record<string, { sql: string; messages: (key: number) => SlashableMessage[] }> = {
  'the newest block is deleted, and another one is asked for in its place': {
    sql: `DELETE FROM strongroom.blocks WHERE slot = 30 AND ${ofKey1}`,
    messages: (key) => [block(key, 30, 'b'), block(key, 31, 'b')],
  },
  'an older block is deleted, and another one is asked for in its place': {
    sql: `DELETE FROM strongroom.blocks WHERE slot = 20 AND ${ofKey1}`,
    messages: (key) => [block(key, 20, 'b')],
  },
  'an older block is moved, and another one is asked for in its place': {
    sql: `UPDATE strongroom.blocks SET slot = 21 WHERE slot = 20 AND ${ofKey1}`,
    messages: (key) => [block(key, 20, 'b'), block(key, 21, 'a'), block(key, 25, 'b')],
  },
  'the root of a block is replaced by that of the message': {
    sql: `UPDATE strongroom.blocks SET signing_root =
            (SELECT signing_root FROM strongroom.attestations WHERE target_epoch = 2 AND ${ofKey1})
          WHERE slot = 20 AND ${ofKey1}`,
    messages: (key) => [block(key, 20, 'v')],
  },
  'the newest vote is deleted': {
    sql: `DELETE FROM strongroom.attestations WHERE target_epoch = 6 AND ${ofKey1}`,
    messages: (key) => [vote(key, 5, 6, 'b'), vote(key, 6, 7, 'b')],
  },
  'an older vote is deleted, and one that surrounds it is asked for': {
    sql: `DELETE FROM strongroom.attestations WHERE target_epoch = 4 AND ${ofKey1}`,
    messages: (key) => [vote(key, 2, 5, 'b'), vote(key, 3, 4, 'b')],
  },
  'the source of an older vote is changed, and one that surrounds it is asked for': {
    sql: `UPDATE strongroom.attestations SET source_epoch = 2 WHERE target_epoch = 4 AND ${ofKey1}`,
    messages: (key) => [vote(key, 2, 5, 'b'), vote(key, 2, 4, 'v')],
  },
  'a vote of another key is put in its place': {
    sql: `DELETE FROM strongroom.attestations WHERE target_epoch = 6 AND ${ofKey1};
          UPDATE strongroom.attestations SET validator_id =
            (SELECT id FROM strongroom.validators WHERE ${rowOfKey1}) WHERE target_epoch = 6 AND validator_id = 2`,
    messages: (key) => [vote(key, 6, 7, 'b')],
  },
  'the marks are lowered': {
    sql: `UPDATE strongroom.validators SET highest_target_epoch = 2, highest_slot = 10 WHERE ${rowOfKey1}`,
    messages: (key) => [vote(key, 3, 4, 'b'), vote(key, 7, 8, 'b'), block(key, 31, 'b')],
  },
  'the low-water marks are lowered': {
    sql: `UPDATE strongroom.validators SET low_water_slot = 0 WHERE ${rowOfKey1}`,
    messages: (key) => [block(key, 5, 'b'), vote(key, 6, 7, 'b')],
  },
  'the counts are changed': {
    sql: `UPDATE strongroom.validators SET blocks = 2 WHERE ${rowOfKey1}`,
    messages: (key) => [block(key, 31, 'b')],
  },
  'a mark is a number that was never written': {
    sql: `UPDATE strongroom.validators SET highest_slot = 9223372036854775807 WHERE ${rowOfKey1}`,
    messages: (key) => [block(key, 31, 'b'), vote(key, 6, 7, 'b')],
  },
  'the row of the key is brought back to an earlier one, with its code': {
    sql: `UPDATE strongroom.validators SET highest_slot = NULL, highest_source_epoch = NULL, highest_target_epoch = NULL,
            low_water_slot = NULL, low_water_source_epoch = NULL, low_water_target_epoch = NULL,
            blocks = 0, attestations = 0, code = (SELECT code FROM fresh) WHERE ${rowOfKey1}`,
    messages: (key) => [block(key, 5, 'b'), block(key, 30, 'b'), block(key, 31, 'b'), vote(key, 0, 1, 'b')],
  },
};

describe('a damaged record makes its key unavailable, and only its key', () => {
  it.each(Object.entries(damages))('%s', async (_name, { sql, messages }) => {
    await keepCodeOfFreshRow();
    await server.query(database, sql);
    for (const message of messages(1)) {
      const batch = [block(4, 100, 'a'), message];
      const verdicts = await backend.checkAndRecord(batch, [NO_MARKS, NO_MARKS]);
      expect([message, ...verdicts.map(({ kind }) => kind)]).toEqual([message, 'safe', 'unavailable']);
      expect(verdicts.map(verdictName)).toContain('slashing_integrity');
    }
    for (const message of messages(3)) expect((await checkOne(backend, message)).kind).not.toBe('unavailable');
  });

  it('is neither exported as if it were good, nor merged with an import, nor pruned', async () => {
    await server.query(database, `UPDATE strongroom.blocks SET slot = 21 WHERE slot = 20 AND ${ofKey1}`);
    const damaged = { reason: 'slashing_integrity' };
    await expect(collect(backend.exportHistories())).rejects.toMatchObject(damaged);
    await expect(backend.importHistories(stream([history(1, [[40, null]], [])]))).rejects.toMatchObject(damaged);
    const far = 1_000_000;
    await checkOne(backend, block(1, far, 'a'));
    await checkOne(backend, block(2, far, 'a'));
    while ((await backend.pruneStep(10)) > 0);
    const rows = await server.query(database, `SELECT slot::int FROM strongroom.blocks WHERE ${ofKey1} ORDER BY slot`);
    expect(rows.map(({ slot }) => slot)).toEqual([10, 21, 30, far]);
    expect(await backend.status()).toMatchObject({ blocks: 4 + 1 + 3 });
  });
});

describe('pruning goes past a key that it cannot prune', () => {
  const far = 1_000_000;
  it.each([
    [
      'whose lowest entry to keep fails',
      `UPDATE strongroom.blocks SET signing_root = NULL WHERE slot = ${far} AND ${ofKey1}`,
    ],
    ['whose highest entry is gone', `DELETE FROM strongroom.blocks WHERE slot = ${far} AND ${ofKey1}`],
    [
      'whose votes fail',
      `UPDATE strongroom.attestations SET code = decode(repeat('00', 16), 'hex') WHERE target_epoch = 2 AND ${ofKey1}`,
    ],
  ])('%s', async (_name, sql) => {
    for (const key of [1, 2, 3]) await checkOne(backend, block(key, far, 'a'));
    for (const key of [1, 2, 3]) await checkOne(backend, vote(key, far, far + 1, 'a'));
    await server.query(database, sql);
    const before = await server.query(database, `SELECT slot::int FROM strongroom.blocks WHERE ${ofKey1}`);
    let pruned = 0;
    for (let step = await backend.pruneStep(4); step > 0; step = await backend.pruneStep(4)) pruned += step;
    expect(pruned).toBe(12);
    expect(await server.query(database, `SELECT slot::int FROM strongroom.blocks WHERE ${ofKey1}`)).toEqual(before);
  });
});

it('a refusal rests on the row of the key or on one entry, and needs no look at the others', async () => {
  await server.query(
    database,
    `UPDATE strongroom.attestations SET code = decode(repeat('00', 16), 'hex') WHERE target_epoch = 2 AND ${ofKey1}`,
  );
  expect(verdictName(await checkOne(backend, vote(1, 4, 7, 'b')))).toBe('surrounding_vote');
  expect(verdictName(await checkOne(backend, vote(1, 0, 3, 'b')))).toBe('slashing_integrity');
  expect(verdictName(await checkOne(backend, vote(1, 0, 1, 'b')))).toBe('source_below_low_water_mark');
});

it('codes made with another key are refused when the database is opened', async () => {
  const other = openTestBackend(server.url(database), { integrityKey: Buffer.alloc(32, 8) });
  await expect(other).rejects.toMatchObject({ reason: 'slashing_integrity' });
});

/** The code that a row of key 1 without history has, in the table `fresh`. */
async function keepCodeOfFreshRow(): Promise<void> {
  const twin = await server.createDatabase();
  const other = await openTestBackend(server.url(twin));
  // A refused message leaves the key's row as it was added.
  await checkOne(other, vote(1, 2, 1, 'a'));
  await other.close();
  const [row] = await server.query(twin, `SELECT code FROM strongroom.validators WHERE ${rowOfKey1}`);
  await server.query(database, 'CREATE TABLE fresh (code bytea)');
  await server.query(database, 'INSERT INTO fresh VALUES ($1)', [row?.['code']]);
}
