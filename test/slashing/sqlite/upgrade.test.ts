// Databases of version 1 of the schema are brought up to date when they are opened: all of it, or nothing.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { rowIntegrity } from '../../../enclave/slashing/history/integrity.ts';
import { RETAINED_EPOCHS } from '../../../enclave/slashing/history/prune.ts';
import { KEPT_ENTRIES } from '../../../enclave/slashing/interchange/reduce.ts';
import { heldExports } from '../../../enclave/slashing/sqlite/operations/export.ts';
import { STEP_ENTRIES } from '../../../enclave/slashing/sqlite/steps.ts';
import { openDatabase } from '../../../enclave/slashing/sqlite/tables/schema.ts';
import {
  block,
  checkOne,
  collect,
  history,
  MAIN_ROOT,
  publicKeyOf,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { type Version1Key, writeVersion1 } from '../../support/slashing-version-1.ts';
import { ownDatabase } from './own-database.ts';

const MANY = 30_000;
const KEYS: readonly Version1Key[] = [
  {
    history: history(
      1,
      [
        [10, 'a'],
        [20, 'b'],
      ],
      [
        [1, 2, 'a'],
        [3, 4, null],
      ],
    ),
  },
  // Pruned, with an entry below the marks that an import brought later.
  {
    history: history(
      2,
      [
        [50, 'a'],
        [90, 'b'],
      ],
      [[8, 9, 'a']],
    ),
    lowWater: { slot: 80, sourceEpoch: 8, targetEpoch: 9 },
  },
  { history: history(3, [], [[1, 2, 'a']]) },
];

const database = ownDatabase();
const { open, query } = database;

describe.each([
  ['checksums', undefined],
  ['a master key', new Uint8Array(32).fill(9)],
])('a database of version 1, with %s', (_name, integrityKey) => {
  it('is upgraded with all its records, once, and refuses what it refused', async () => {
    writeVersion1(database.path, KEYS, integrityKey);
    const first = await open(integrityKey);
    const { id } = await first.identity();
    expect(await first.status()).toMatchObject({ validators: 3, blocks: 4, attestations: 4 });
    const file = await collect(first.exportHistories());
    expect(file[0]).toEqual(KEYS[0]?.history);
    await first.close();
    const backend = await open(integrityKey);
    expect(await backend.identity()).toEqual({ id, revision: 0, floor: null });
    const verdict = async (...messages: Parameters<typeof checkOne>[1][]) =>
      Promise.all(messages.map(async (message) => verdictName(await checkOne(backend, message))));
    expect(await verdict(block(1, 10, 'a'), block(1, 10, 'x'), block(1, 9, 'x'))).toEqual([
      'repeat',
      'double_block',
      'block_below_low_water_mark',
    ]);
    expect(await verdict(vote(1, 1, 2, 'a'), vote(1, 3, 4, 'a'), vote(1, 2, 5, 'x'))).toEqual([
      'repeat',
      'double_vote',
      'surrounding_vote',
    ]);
    expect(await verdict(block(2, 70, 'x'), block(2, 50, 'a'), block(2, 85, 'n'), block(2, 49, 'x'))).toEqual([
      'block_below_low_water_mark',
      'repeat',
      'safe',
      'block_below_low_water_mark',
    ]);
    expect(await verdict(block(1, 15, 'n'), vote(3, 2, 3, 'n'), vote(9, 0, 1, 'n'))).toEqual(['safe', 'safe', 'safe']);
  });

  it.each([
    ['a head', 'UPDATE validators SET low_slot = 1 WHERE id = 2', /0x0+2 fail/],
    ['an entry', 'UPDATE blocks SET signing_root = NULL WHERE validator = 2', /0x0+2 fail/],
    ['an entry that is gone', 'DELETE FROM attestations WHERE validator = 3', /0x0+3 fail/],
    ['a head that is gone', 'DELETE FROM validators WHERE id = 2', /metadata of the database fails/],
    ['the metadata', 'UPDATE metadata SET validator_count = 4', /metadata of the database fails/],
  ])('is refused and left as it is when %s is damaged, with the key named', async (_damage, statement, message) => {
    writeVersion1(database.path, KEYS, integrityKey);
    const before = new DatabaseSync(database.path);
    before.exec(statement);
    before.close();
    await expect(open(integrityKey)).rejects.toThrow(message);
    expect(query('SELECT schema_version AS version FROM metadata')).toEqual({ version: 1 });
    expect(query("SELECT count(*) AS tables FROM sqlite_schema WHERE type = 'table'")).toEqual({ tables: 4 });
  });
});

it('an entry below what a database of version 1 had is damage afterwards', async () => {
  writeVersion1(database.path, [{ history: history(1, [[1000, 'a']], []) }]);
  const pruned = join(database.folder, 'earlier.sqlite');
  writeVersion1(pruned, [{ history: history(1, [[500, 'p']], []) }]);
  const backend = await open();
  const other = new DatabaseSync(database.path);
  other.exec(`ATTACH '${pruned}' AS earlier; INSERT INTO blocks SELECT * FROM earlier.blocks`);
  other.close();
  expect(verdictName(await checkOne(backend, block(1, 500, 'p')))).toBe('slashing_integrity');
});

it('a key with very many entries is exported in steps, as pruning would leave it, and signs on', async () => {
  const votes = Array.from({ length: MANY }, (_, epoch) => [epoch, epoch + 1, null] as const);
  writeVersion1(database.path, [{ history: history(1, [], votes) }, { history: history(2, [], [[1, 2, 'a']]) }]);
  const backend = await open();
  expect(verdictName(await checkOne(backend, vote(1, MANY, MANY + 1, 'n')))).toBe('safe');
  expect(verdictName(await checkOne(backend, vote(1, 5, 6, 'x')))).toBe('double_vote');
  // Whether it is safe only all of its entries could say, which are too many to be read at once.
  expect(verdictName(await checkOne(backend, vote(1, MANY - 1, MANY - 1, 'x')))).not.toBe('safe');
  await backend.close();

  const genesisValidatorsRoot = Buffer.from(MAIN_ROOT.slice(2), 'hex');
  const options = { path: database.path, genesisValidatorsRoot, integrity: rowIntegrity({ genesisValidatorsRoot }) };
  const { connection } = openDatabase(options);
  const exports_ = heldExports(options, { now: () => 0, monotonic: () => 0 });
  exports_.begin(1, undefined);
  const steps = [...exports_.next(1)];
  exports_.end(1);
  connection.close();
  expect(steps.length).toBeGreaterThanOrEqual(MANY / STEP_ENTRIES);
  expect(Math.max(...steps)).toBeLessThanOrEqual(2 * (STEP_ENTRIES + KEPT_ENTRIES));

  const [file] = await collect((await open()).exportHistories([publicKeyOf(1)]));
  expect(file?.attestations).toHaveLength(RETAINED_EPOCHS + 1);
});
