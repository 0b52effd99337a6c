// What pruning costs the store: whoever votes waits for it, and a million keys make 2,604 votes old in a second.

import { DatabaseSync } from 'node:sqlite';
import { afterEach, expect, it, vi } from 'vitest';
import { GATHERED_EPOCHS, RETAINED_EPOCHS } from '../../../signer/slashing/history/prune.ts';
import { PRUNE_STEP_ENTRIES } from '../../../signer/slashing/operations/prune-loop.ts';
import { PRUNED_AT_ONCE } from '../../../signer/slashing/operations/pruning.ts';
import { IS_PRUNABLE } from '../../../signer/slashing/sqlite/tables/schema.ts';
import { verdictName, vote } from '../../support/slashing.ts';
import { openHere } from './import-set-up.ts';
import { ownDatabase } from './own-database.ts';

const KEYS = 3 * PRUNED_AT_ONCE;
const OLD_EPOCHS = GATHERED_EPOCHS + 1;

it('keys that vote in every epoch are pruned once in 64 epochs, eight in one commit', async () => {
  const { check, operations, connection, close } = openHere();
  const voteOfAll = (target: number) => {
    const votes = Array.from({ length: KEYS }, (_, key) => vote(key + 1, target - 1, target, 'a'));
    expect(new Set(check(votes).map(verdictName))).toEqual(new Set(['safe']));
  };
  for (let epoch = 1; epoch <= OLD_EPOCHS; epoch++) voteOfAll(epoch);
  voteOfAll(OLD_EPOCHS + RETAINED_EPOCHS);
  const run = vi.spyOn(connection, 'exec');
  const commits = () => run.mock.calls.filter(([sql]) => sql === 'COMMIT').length;
  expect(await operations.pruneStep(PRUNE_STEP_ENTRIES)).toBe(0);
  expect(commits()).toBe(0);

  voteOfAll(OLD_EPOCHS + RETAINED_EPOCHS + 1);
  run.mockClear();
  for (const steps of [1, 2, 3]) {
    expect(await operations.pruneStep(PRUNE_STEP_ENTRIES)).toBe(PRUNED_AT_ONCE * OLD_EPOCHS);
    expect(commits()).toBe(steps);
  }
  expect(await operations.pruneStep(PRUNE_STEP_ENTRIES)).toBe(0);
  expect(connection.prepare('SELECT count(*) AS votes FROM attestations').get()).toEqual({ votes: 2 * KEYS });
  close();
});

const own = ownDatabase();
afterEach(() => vi.restoreAllMocks());

it('the search for keys to prune reads the index of those, and no other head', () => {
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  const { connection, close } = openHere();
  const searches = prepare.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes(IS_PRUNABLE));
  expect(searches).not.toEqual([]);
  for (const sql of new Set(searches)) {
    const plan = connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(Buffer.of(0), 1);
    expect(plan.map(({ detail }) => detail)).toEqual([
      'SEARCH validators USING INDEX prunable_validators (public_key>?)',
    ]);
  }
  close();
});

it.each([
  ['is missing', []],
  ['has other words', ['CREATE INDEX prunable_validators ON validators (public_key) WHERE low_slot < high_slot - 1']],
])('an index that %s is made again when the database is opened', async (_state, statements) => {
  const first = await own.open();
  await first.close();
  own.tamper('DROP INDEX prunable_validators', ...statements);
  await own.open();
  expect(own.query("SELECT sql FROM sqlite_schema WHERE name = 'prunable_validators'")).toEqual([
    { sql: `CREATE INDEX prunable_validators ON validators (public_key) WHERE ${IS_PRUNABLE}` },
  ]);
});
