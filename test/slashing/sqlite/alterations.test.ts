// The SQLite store when somebody alters, adds or removes its rows: the answer is 503, for as few keys as possible.

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../../../signer/slashing/history/prune.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { unrestrained } from '../../support/restrained.ts';
import { block, checkOne, collect, history, quietLog, stream, verdictName, vote } from '../../support/slashing.ts';
import { ownDatabase } from './own-database.ts';

const database = ownDatabase();
const { open, tamper } = database;

const verdict = async (backend: SlashingBackend, ...message: Parameters<typeof block>) =>
  verdictName(await checkOne(backend, block(...message)));

describe.each([
  ['checksums', undefined],
  ['a master key', new Uint8Array(32).fill(9)],
])('rows that were changed behind the signer, with %s', (_name, integrityKey) => {
  /** Two keys with some history each; the second must never suffer for the first. */
  async function prepared(): Promise<SlashingBackend> {
    const backend = await open(integrityKey);
    for (const key of [1, 2]) {
      for (const slot of [10, 20, 30]) await checkOne(backend, block(key, slot, 'a'));
      for (const epoch of [1, 2, 3]) await checkOne(backend, vote(key, epoch * 2, epoch * 2 + 1, 'a'));
    }
    return backend;
  }
  const FIRST = '(SELECT min(id) FROM validators)';

  it.each([
    ['a mark of the head', `UPDATE validators SET high_slot = 5 WHERE id = ${FIRST}`],
    ['a low-water mark', `UPDATE validators SET low_slot = 1 WHERE id = ${FIRST}`],
    ['a mark that is taken away', `UPDATE validators SET high_slot = NULL WHERE id = ${FIRST}`],
    ['a number that no program writes', `UPDATE validators SET high_slot = 9223372036854775807 WHERE id = ${FIRST}`],
    ['a negative number', `UPDATE validators SET high_slot = -1 WHERE id = ${FIRST}`],
    ['the code itself', `UPDATE validators SET seal = zeroblob(length(seal)) WHERE id = ${FIRST}`],
    [
      'heads that change places',
      `UPDATE validators SET (low_slot, high_slot, seal) = (SELECT low_slot, high_slot, seal FROM validators WHERE id <> ${FIRST}) WHERE id = ${FIRST}`,
    ],
    ['the head deleted', `DELETE FROM validators WHERE id = ${FIRST}`],
  ])('%s: the next request of that key is 503, the other key goes on', async (_change, statement) => {
    const backend = await prepared();
    tamper(statement);
    const batch = [block(1, 40, 'b'), block(2, 40, 'b')];
    const verdicts = await backend.checkAndRecord(
      batch,
      batch.map(() => ({ slot: null, sourceEpoch: null, targetEpoch: null })),
    );
    expect(verdicts.map(verdictName)).toEqual(['slashing_integrity', 'safe']);
    // Without this answer no key of a signer would be loaded.
    expect(await backend.tenures(undefined, true)).toEqual(new Map());
  });

  it.each([
    [
      'a block with another root',
      `UPDATE blocks SET signing_root = zeroblob(32) WHERE validator = ${FIRST} AND slot = 20`,
    ],
    ['a block moved to another slot', `UPDATE blocks SET slot = 21 WHERE validator = ${FIRST} AND slot = 20`],
    ['a block deleted', `DELETE FROM blocks WHERE validator = ${FIRST} AND slot = 20`],
    [
      'a block of another key instead',
      `UPDATE blocks SET code = (SELECT code FROM blocks AS other WHERE other.slot = 20 AND other.validator <> ${FIRST}) WHERE validator = ${FIRST} AND slot = 20`,
    ],
  ])('%s: a request for which it matters is 503', async (_change, statement) => {
    const backend = await prepared();
    tamper(statement);
    expect(await verdict(backend, 1, 20, 'b')).toBe('slashing_integrity');
    expect(await verdict(backend, 1, 25, 'b')).toBe('slashing_integrity');
    expect(await verdict(backend, 2, 20, 'b')).toBe('double_block');
    expect(await verdict(backend, 2, 25, 'b')).toBe('safe');
  });

  it.each([
    ['a vote deleted', `DELETE FROM attestations WHERE validator = ${FIRST} AND target_epoch = 5`, [3, 6]],
    ['the last vote deleted', `DELETE FROM attestations WHERE validator = ${FIRST} AND target_epoch = 7`, [5, 8]],
    [
      'a vote with another source',
      `UPDATE attestations SET source_epoch = 5 WHERE validator = ${FIRST} AND target_epoch = 5`,
      [3, 6],
    ],
  ] as const)('%s: a vote that could surround it is 503', async (_change, statement, [source, target]) => {
    const backend = await prepared();
    tamper(statement);
    expect(verdictName(await checkOne(backend, vote(1, source, target, 'b')))).toBe('slashing_integrity');
    expect(verdictName(await checkOne(backend, vote(2, source, target, 'b')))).toBe('surrounding_vote');
    await expect(collect(backend.exportHistories())).rejects.toMatchObject({ reason: 'slashing_integrity' });
  });

  it('a refusal rests on the head or one row, and needs no look at the others', async () => {
    const backend = await prepared();
    tamper(
      `UPDATE attestations SET code = zeroblob(16) WHERE validator = ${FIRST} AND target_epoch = 3`,
      `UPDATE blocks SET code = zeroblob(16) WHERE validator = ${FIRST} AND slot = 20`,
    );
    expect(verdictName(await checkOne(backend, vote(1, 5, 8, 'b')))).toBe('surrounding_vote');
    expect(verdictName(await checkOne(backend, vote(1, 1, 4, 'b')))).toBe('slashing_integrity');
    expect(verdictName(await checkOne(backend, vote(1, 0, 1, 'b')))).toBe('source_below_low_water_mark');
    expect(verdictName(await checkOne(backend, vote(1, 3, 5, 'b')))).toBe('double_vote');
    expect(await verdict(backend, 1, 9, 'b')).toBe('block_below_low_water_mark');
    expect(await verdict(backend, 1, 25, 'b')).toBe('slashing_integrity');
  });

  it('a head brought back without its rows: the key is 503, and the rest of the batch is recorded', async () => {
    const backend = await prepared();
    tamper('CREATE TABLE old_validators AS SELECT * FROM validators');
    for (const key of [1, 2]) {
      await checkOne(backend, block(key, 40, 'a'));
      await checkOne(backend, vote(key, 8, 9, 'a'));
    }
    tamper(
      `DELETE FROM validators WHERE id = ${FIRST}`,
      'INSERT INTO validators SELECT * FROM old_validators WHERE id NOT IN (SELECT id FROM validators)',
    );
    for (const message of [block(1, 40, 'b'), block(1, 35, 'b'), block(1, 50, 'b'), vote(1, 7, 8, 'b')]) {
      const other = block(2, message.kind === 'block' ? message.slot + 20 : 90, 'b');
      const verdicts = await backend.checkAndRecord([message, other], [NO_MARKS, NO_MARKS]);
      expect(verdicts.map(verdictName)).toEqual(['slashing_integrity', 'safe']);
    }
  });

  it('rows left behind by a head that is gone are in the way of a new key, and of nothing else', async () => {
    const backend = await prepared();
    tamper('INSERT INTO blocks SELECT validator + 2, slot, signing_root, code FROM blocks');
    const batch = [block(3, 30, 'b'), block(2, 60, 'b')];
    const verdicts = await backend.checkAndRecord(batch, [NO_MARKS, NO_MARKS]);
    expect(verdicts.map(verdictName)).toEqual(['slashing_integrity', 'safe']);
    expect(await backend.status()).toMatchObject({ validators: 2 });
  });

  it('the newest block deleted: neither it nor another in its place is signed', async () => {
    const backend = await prepared();
    tamper(`DELETE FROM blocks WHERE validator = ${FIRST} AND slot = 30`);
    expect(await verdict(backend, 1, 30, 'a')).toBe('slashing_integrity');
    expect(await verdict(backend, 1, 30, 'b')).toBe('slashing_integrity');
  });

  it('one key rolled back to an earlier, once valid state: this process remembers more', async () => {
    const backend = await open(integrityKey);
    const protection = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
    for (const key of [1, 2]) await protection.check(block(key, 10, 'a'));
    tamper(
      'CREATE TABLE old_validators AS SELECT * FROM validators',
      'CREATE TABLE old_blocks AS SELECT * FROM blocks',
    );
    for (const key of [1, 2]) await protection.check(block(key, 20, 'a'));
    tamper(
      `DELETE FROM validators WHERE id = ${FIRST}`,
      'INSERT INTO validators SELECT * FROM old_validators WHERE id NOT IN (SELECT id FROM validators)',
      `DELETE FROM blocks WHERE validator = ${FIRST} AND slot = 20`,
    );
    await expect(protection.check(block(1, 20, 'b'))).rejects.toMatchObject({ reason: 'slashing_rollback' });
    await expect(protection.check(block(1, 99, 'b'))).rejects.toMatchObject({ reason: 'slashing_rollback' });
    expect(await protection.check(block(2, 21, 'b'))).toEqual({ kind: 'safe', repeat: false });
  });

  it('an import into a damaged key is refused whole; pruning leaves the damaged key alone', async () => {
    const backend = await prepared();
    for (const key of [1, 2]) await checkOne(backend, block(key, RETAINED_SLOTS + 100, 'far'));
    tamper(`UPDATE blocks SET signing_root = NULL WHERE validator = ${FIRST} AND slot = 20`);
    const file = [history(2, [[50, null]], []), history(1, [[20, null]], [])];
    await expect(backend.importHistories(stream(file))).rejects.toMatchObject({ reason: 'slashing_integrity' });
    let pruned = 0;
    for (let deleted = await backend.pruneStep(100); deleted > 0; deleted = await backend.pruneStep(100))
      pruned += deleted;
    expect(pruned).toBe(3);
    expect(await verdict(backend, 1, 25, 'b')).toBe('slashing_integrity');
    expect(await verdict(backend, 2, 25, 'b')).toBe('block_below_low_water_mark');
  });

  it.each([
    ['another code', 'signing_root = NULL'],
    ['a number that was never written', 'source_epoch = 9007199254740993'],
  ])('pruning leaves a key alone that has a row with %s, and no other', async (_, change) => {
    const backend = await open();
    for (const key of [1, 2, 3])
      for (const target of [2, 4, RETAINED_EPOCHS + 500]) await checkOne(backend, vote(key, target - 1, target, 'a'));
    tamper(`UPDATE attestations SET ${change} WHERE validator = ${FIRST} AND target_epoch = 2`);
    expect(await backend.pruneStep(100)).toBe(4);
    expect(await backend.pruneStep(100)).toBe(0);
  });
});
