// The contract of the complete slashing stores when their rows are altered, added or removed, or brought back with
// codes that were good once, as a writer without the master key can: the answer is 503, for as few keys as possible,
// and no verdict rests on what is not as it was written.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import type { SlashableMessage, SlashingBackend } from '../../signer/slashing/types.ts';
import { unrestrained } from '../support/restrained.ts';
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
} from '../support/slashing.ts';

/** A store of its own for each test. The statements call tables and columns as SQLite's store does. */
export interface DamagedStore {
  open(): Promise<SlashingBackend>;
  /** A writer other than the signer changes rows, also while the signer runs. */
  tamper(statements: string): Promise<unknown>;
  /** Every row. */
  query(statement: string): Promise<readonly unknown[]>;
  /** Several processes may have it open at once. */
  readonly manySigners: boolean;
  /** What this store calls otherwise; `seals` are all columns that make a head whole, `seal` is one of them. */
  readonly words: Readonly<Record<string, string>>;
  /** How `open` refuses a damaged record of the store. */
  readonly refusal: object;
  /** Verdicts above the marks of a key, and pruning, rest on its newest rows too, or on its head alone. */
  readonly looksAtNewest: boolean;
  /** Alterations of the record of the store that no other store can have. */
  readonly ownRecord?: readonly string[];
}

const DAMAGED = { reason: 'slashing_integrity' };
const FAR = 1_000_000;
const NEVER_WRITTEN = '9223372036854775807';
const ZEROED = `X'${'00'.repeat(16)}'`;
const NOTHING = `public_key = X'${'ab'.repeat(48)}'`;

/** Key 1 is damaged, key 2 is sound, and key 3 gives what is put into the rows of key 1. */
const idOf = (key: number) => `(SELECT id FROM validators WHERE public_key = X'${publicKeyOf(key).slice(2)}')`;
const [HEAD, ROWS] = [`id = ${idOf(1)}`, `validator = ${idOf(1)}`];
const blockRow = (slot: number) => `slot = ${slot} AND ${ROWS}`;
const voteRow = (target: number) => `target_epoch = ${target} AND ${ROWS}`;
const fromKey3 = (columns: string, table: string, which: string) =>
  `(${columns}) = (SELECT ${columns} FROM ${table} WHERE ${which} = ${idOf(3)})`;
const KEEP_HEADS = 'CREATE TABLE kept AS SELECT * FROM validators';
const RESTORE_HEAD = `DELETE FROM validators WHERE ${HEAD};
  INSERT INTO validators SELECT * FROM kept WHERE id NOT IN (SELECT id FROM validators)`;

/** A message, and what the store says of it where the rows are sound. */
type Question = readonly [ask: (key: number) => SlashableMessage, sound: string, restsOnNewest?: true];
const blockAt = (slot: number, sound = 'safe', root = 'b'): Question => [(key) => block(key, slot, root), sound];
const voteOf = (source: number, target: number, sound = 'safe', root = 'b'): Question => [
  (key) => vote(key, source, target, root),
  sound,
];
const aboveNewest = ([ask, sound]: Question): Question => [ask, sound, true];
const AROUND_20 = [blockAt(20, 'double_block'), blockAt(25)];

/** What is done to the rows of key 1, and what is asked of it, to which the answer is 503. */
type Damage = readonly [name: string, statements: string, questions: readonly Question[]];
const headIs = (name: string, change: string, ...questions: Question[]): Damage => [
  name,
  `UPDATE validators SET ${change} WHERE ${HEAD}`,
  [...questions, blockAt(40)],
];
const block20Is = (name: string, change: string, ...questions: Question[]): Damage => [
  name,
  `UPDATE blocks SET ${change} WHERE ${blockRow(20)}`,
  [...AROUND_20, ...questions],
];
const DAMAGES: readonly Damage[] = [
  headIs('a mark is lowered', 'high_slot = 5'),
  headIs(
    'the marks are lowered',
    'high_target_epoch = 2, high_slot = 10',
    ...[voteOf(3, 4, 'double_vote'), voteOf(7, 8), blockAt(31)],
  ),
  headIs('a mark is taken away', 'high_slot = NULL'),
  headIs('a mark is a number that no program writes', `high_slot = ${NEVER_WRITTEN}`, blockAt(31), voteOf(6, 7)),
  headIs('a mark is a negative number', 'high_slot = -1'),
  headIs('a low-water mark is lowered', 'low_slot = 0', blockAt(5, 'block_below_low_water_mark'), voteOf(6, 7)),
  headIs('a count is lowered', 'block_count = 2', blockAt(31)),
  headIs('the code of the head is replaced', 'seal = zeroed_seal'),
  headIs('the head is that of another key', fromKey3('low_slot, high_slot, seals', 'validators', 'id')),
  ['the head is deleted', `DELETE FROM validators WHERE ${HEAD}`, [blockAt(40)]],
  block20Is('a block has another root', `signing_root = X'${'00'.repeat(32)}'`),
  block20Is(
    'a block has the root of the message that is asked for',
    `signing_root = (SELECT signing_root FROM attestations WHERE ${voteRow(2)})`,
    blockAt(20, 'double_block', 'v'),
  ),
  block20Is('a block is moved to another slot', 'slot = 21', blockAt(21, 'safe', 'a')),
  block20Is('a block has the code of another key', fromKey3('code', 'blocks', 'slot = 20 AND validator')),
  ['a block is deleted', `DELETE FROM blocks WHERE ${blockRow(20)}`, AROUND_20],
  [
    'the newest block is deleted',
    `DELETE FROM blocks WHERE ${blockRow(30)}`,
    [blockAt(30, 'repeat', 'a'), blockAt(30, 'double_block'), aboveNewest(blockAt(31))],
  ],
  [
    'a vote is deleted',
    `DELETE FROM attestations WHERE ${voteRow(4)}`,
    [voteOf(2, 5, 'surrounding_vote'), voteOf(3, 4, 'double_vote')],
  ],
  [
    'the newest vote is deleted',
    `DELETE FROM attestations WHERE ${voteRow(6)}`,
    [voteOf(4, 7, 'surrounding_vote'), voteOf(5, 6, 'double_vote'), aboveNewest(voteOf(6, 7))],
  ],
  ...[2, 4].map(
    (source): Damage => [
      `a vote has the source ${source} in the place of 3`,
      `UPDATE attestations SET source_epoch = ${source} WHERE ${voteRow(4)}`,
      [voteOf(2, 5, 'surrounding_vote'), voteOf(2, 4, 'double_vote', 'v')],
    ],
  ),
  [
    'a vote of another key is put in the place of the newest',
    `DELETE FROM attestations WHERE ${voteRow(6)};
     UPDATE attestations SET validator = ${idOf(1)} WHERE target_epoch = 6 AND validator = ${idOf(3)}`,
    [voteOf(5, 6, 'double_vote'), aboveNewest(voteOf(6, 7))],
  ],
];

/** What is done to key 1, and in how many steps the other keys are pruned. */
type Unprunable = readonly [name: string, change: string, steps: 'one' | 'many'];
const UNPRUNABLE: readonly Unprunable[] = [
  ['a block has no root', `UPDATE blocks SET signing_root = NULL WHERE ${blockRow(20)}`, 'many'],
  ['a block is moved', `UPDATE blocks SET slot = 21 WHERE ${blockRow(20)}`, 'many'],
  ['the block to keep is gone', `DELETE FROM blocks WHERE ${blockRow(FAR)}`, 'many'],
  ['a vote has a code of zeros', `UPDATE attestations SET code = ${ZEROED} WHERE ${voteRow(2)}`, 'many'],
  ['a vote has no root', `UPDATE attestations SET signing_root = NULL WHERE ${voteRow(2)}`, 'one'],
  [
    'a vote has a source never written',
    `UPDATE attestations SET source_epoch = 9007199254740993 WHERE ${voteRow(2)}`,
    'one',
  ],
];
const KEPT_FAILS: Unprunable = [
  'the block to keep fails',
  `UPDATE blocks SET signing_root = NULL WHERE ${blockRow(FAR)}`,
  'many',
];

export function damageContract(name: string, store: DamagedStore): void {
  let backend: SlashingBackend;
  const opened: SlashingBackend[] = [];
  const inWords = (text: string) => text.replace(/\b[a-z_]+\b/g, (word) => store.words[word] ?? word);
  const tamper = (...statements: string[]) => store.tamper(inWords(statements.join('; ')));
  async function open(): Promise<SlashingBackend> {
    const one = await store.open();
    opened.push(one);
    return one;
  }
  /** The process that runs, then one that starts, and what each says of a sound message that the first has recorded. */
  async function* processes(): AsyncGenerator<'safe' | 'repeat'> {
    yield 'safe';
    await startAnother();
    yield 'repeat';
  }
  /** Beside the one that runs, where both may use the store. */
  async function startAnother(): Promise<void> {
    if (!store.manySigners) await backend.close();
    backend = await open();
  }
  const verdict = async (message: SlashableMessage) => verdictName(await checkOne(backend, message));
  async function verdicts(...messages: SlashableMessage[]): Promise<string[]> {
    const found = await backend.checkAndRecord(
      messages,
      messages.map(() => NO_MARKS),
    );
    return found.map(verdictName);
  }
  async function expectDamaged(...messages: SlashableMessage[]): Promise<void> {
    for (const message of messages) expect([message, await verdict(message)]).toEqual([message, DAMAGED.reason]);
  }
  const record = async (...messages: SlashableMessage[]) =>
    expect(await verdicts(...messages)).toEqual(messages.map(() => 'safe'));
  /** Blocks at 10, 20 and 30, and votes 1→2, 3→4 and 5→6, of keys 1, 2 and 3. */
  async function recordHistories(): Promise<void> {
    for (const slot of [10, 20, 30]) await record(...[1, 2, 3].map((key) => block(key, slot, 'a')));
    for (const source of [1, 3, 5]) await record(...[1, 2, 3].map((key) => vote(key, source, source + 1, 'v')));
  }
  const recordFar = async (...offsets: number[]) => {
    for (const at of offsets.map((offset) => FAR + offset)) {
      await record(...[1, 2, 3].map((key) => block(key, at, 'far')));
      await record(...[1, 2, 3].map((key) => vote(key, at, at + 1, 'far')));
    }
  };
  async function prune(): Promise<number> {
    let pruned = 0;
    for (let step = await backend.pruneStep(4); step > 0; step = await backend.pruneStep(4)) pruned += step;
    return pruned;
  }
  const imports = (...keys: number[]) =>
    backend.importHistories(stream(keys.map((key) => history(key, [[FAR + 50, null]], []))));
  const exports = (...keys: number[]) =>
    collect(backend.exportHistories(keys.length === 0 ? undefined : keys.map(publicKeyOf)));

  beforeEach(async () => {
    backend = await open();
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  describe(`damage contract: ${name}`, () => {
    describe('a damaged key is 503 where the damage matters, is not exported, and the other keys go on', () => {
      it.each(DAMAGES)('%s', async (damage, statements, questions) => {
        await recordHistories();
        await tamper(statements);
        // No key is new while a head is gone.
        const ofNewKey = damage === 'the head is deleted' ? DAMAGED.reason : 'safe';
        for (const [index, [ask, sound, restsOnNewest]] of questions.entries()) {
          const said = restsOnNewest && !store.looksAtNewest ? sound : DAMAGED.reason;
          const batch = [ask(1), block(2, 100 + index, 'b'), block(4, 100 + index, 'b')];
          expect([batch[0], ...(await verdicts(...batch))]).toEqual([batch[0], said, 'safe', ofNewKey]);
        }
        for (const [ask, sound] of questions) expect(await verdict(ask(2))).toBe(sound);
        // Without this answer no key of a signer would be loaded.
        expect(await backend.tenures(undefined, true)).toEqual(new Map());
        await expect(exports()).rejects.toMatchObject(DAMAGED);
      });
    });

    it('a refusal rests on the head or one row, and needs no look at the others', async () => {
      await recordHistories();
      await tamper(`UPDATE attestations SET code = ${ZEROED} WHERE ${voteRow(2)}`);
      await tamper(`UPDATE blocks SET code = ${ZEROED} WHERE ${blockRow(20)}`);
      expect(await verdict(vote(1, 4, 7, 'b'))).toBe('surrounding_vote');
      await expectDamaged(vote(1, 0, 3, 'b'));
      expect(await verdict(vote(1, 0, 1, 'b'))).toBe('source_below_low_water_mark');
      expect(await verdict(vote(1, 2, 4, 'b'))).toBe('double_vote');
      expect(await verdict(block(1, 9, 'b'))).toBe('block_below_low_water_mark');
      await expectDamaged(block(1, 25, 'b'));
    });

    it('a signing root that was put into a row, or taken from another key, is not believed as signed', async () => {
      for (const key of [1, 3]) await record(block(key, 10, `of ${key}`));
      expect(Buffer.from((await backend.signedBlockRoot(publicKeyOf(1), 10)) ?? [])).toEqual(rootOf('of 1'));
      await tamper(`UPDATE blocks SET ${fromKey3('signing_root, code', 'blocks', 'validator')} WHERE ${ROWS}`);
      await expect(backend.signedBlockRoot(publicKeyOf(1), 10)).rejects.toMatchObject(DAMAGED);
    });

    it('rows without a head are in the way of a new key, and of nothing else', async () => {
      await recordHistories();
      await tamper('INSERT INTO blocks SELECT validator + 3, slot, signing_root, code FROM blocks');
      expect(await verdicts(block(4, 30, 'b'), block(2, 60, 'b'))).toEqual([DAMAGED.reason, 'safe']);
      expect(await backend.status()).toMatchObject({ validators: 3 });
    });

    it('an ended tenure cannot be taken away from a head', async () => {
      await recordHistories();
      await backend.endTenures([1, 4].map(publicKeyOf));
      await tamper('UPDATE validators SET tenure = 0');
      await expectDamaged(block(1, 40, 'b'), block(4, 10, 'a'));
      await expect(retiredKeys(backend)).rejects.toMatchObject(DAMAGED);
    });

    describe('an older head of a key, with its code, in the place of the newer one', () => {
      it.each([
        ['before it signed', [block(1, 5, 'b'), block(1, 30, 'b'), block(1, 31, 'b'), vote(1, 0, 1, 'b')]],
        ['before it signed the newest', [block(1, 40, 'b'), block(1, 35, 'b'), block(1, 50, 'b'), vote(1, 7, 8, 'b')]],
      ])('with the newer rows left, as it was %s: damage, for every process', async (when, messages) => {
        const isFresh = when === 'before it signed';
        // A refused message leaves a head without history.
        for (const key of [1, 2, 3]) expect(await verdict(vote(key, 2, 1, 'a'))).toBe('source_after_target');
        if (isFresh) await tamper(KEEP_HEADS);
        await recordHistories();
        if (!isFresh) await tamper(KEEP_HEADS);
        await record(...[1, 2].map((key) => block(key, 40, 'a')));
        await record(...[1, 2].map((key) => vote(key, 8, 9, 'a')));
        await tamper(RESTORE_HEAD);
        for await (const said of processes()) {
          for (const [index, message] of messages.entries()) {
            expect(await verdicts(message, block(2, 100 + index, 'b'))).toEqual([DAMAGED.reason, said]);
          }
        }
      });

      it('with the newer rows deleted: a signer that made them notices, one that starts later cannot', async () => {
        const signer = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
        for (const key of [1, 2]) await signer.check(block(key, 10, 'a'));
        await tamper(KEEP_HEADS);
        for (const key of [1, 2]) await signer.check(block(key, 20, 'a'));
        await tamper(RESTORE_HEAD, `DELETE FROM blocks WHERE ${blockRow(20)}`);
        for (const message of [block(1, 20, 'b'), block(1, 21, 'b'), block(1, 99, 'b')]) {
          await expect(signer.check(message)).rejects.toMatchObject({ reason: 'slashing_rollback' });
        }
        expect(await signer.check(block(2, 21, 'b'))).toEqual({ kind: 'safe', repeat: false });
        // docs/security.md says so: all rows of the key are as they were at an earlier time, and valid.
        await startAnother();
        await record(block(1, 20, 'b'));
      });
    });

    it.each(store.looksAtNewest ? [...UNPRUNABLE, KEPT_FAILS] : UNPRUNABLE)(
      'pruning and imports leave a damaged key alone, and prune the others: %s',
      async (_, change, steps) => {
        await recordHistories();
        await recordFar(0);
        await tamper(change);
        const query = (of: string) => store.query(inWords(`SELECT * FROM ${of} WHERE ${ROWS} ORDER BY 2, 3`));
        const rowsOfKey1 = async () => [await query('blocks'), await query('attestations')];
        const before = await rowsOfKey1();
        const { blocks, attestations } = await backend.status();
        await expect(exports()).rejects.toMatchObject(DAMAGED);
        await expect(imports(2, 1)).rejects.toMatchObject(DAMAGED);
        await expect(imports(1)).rejects.toMatchObject(DAMAGED);
        expect(await (steps === 'many' ? prune() : backend.pruneStep(100))).toBe(12);
        expect(await backend.pruneStep(100)).toBe(0);
        expect(await rowsOfKey1()).toEqual(before);
        expect(await backend.status()).toMatchObject({ blocks: blocks - 6, attestations: attestations - 6 });
        if (change.includes('blocks')) await expectDamaged(block(1, 25, 'b'));
        expect(await verdict(block(2, 25, 'b'))).toBe('block_below_low_water_mark');
      },
    );

    it.each([
      [
        'the lowest that was kept',
        0,
        [blockAt(FAR, 'block_below_low_water_mark'), blockAt(FAR + 5), voteOf(FAR + 1, FAR + 2)],
      ],
      ['one in the middle', 10, [blockAt(FAR + 10), voteOf(FAR + 10, FAR + 11), voteOf(FAR + 9, FAR + 12)]],
    ] as const)('rows that were pruned and are put in the place of %s are noticed', async (_name, gone, questions) => {
      await recordHistories();
      await tamper(...['blocks', 'attestations'].map((of) => `CREATE TABLE old_${of} AS SELECT * FROM ${of}`));
      await recordFar(0, 10, 20);
      expect(await prune()).toBe(18);
      expect(await backend.status()).toMatchObject({ blocks: 9, attestations: 9 });
      await tamper(
        `DELETE FROM blocks WHERE ${blockRow(FAR + gone)}`,
        `INSERT INTO blocks SELECT * FROM old_blocks WHERE ${blockRow(10)}`,
        `DELETE FROM attestations WHERE ${voteRow(FAR + gone + 1)}`,
        `INSERT INTO attestations SELECT * FROM old_attestations WHERE ${voteRow(2)}`,
      );
      for await (const _ of processes()) {
        await expectDamaged(block(1, 10, 'a'), vote(1, 1, 2, 'v'));
        for (const [ask, sound] of questions)
          expect(await verdict(ask(1))).toBe(sound === 'safe' ? DAMAGED.reason : sound);
        await expect(exports()).rejects.toMatchObject(DAMAGED);
        await expect(imports(1)).rejects.toMatchObject(DAMAGED);
        expect(await prune()).toBe(0);
      }
    });

    it.each([
      ['without its head', ''],
      ['with its head', `DELETE FROM validators WHERE ${HEAD}`],
      ['with its head, whose place another key takes', `UPDATE validators SET ${NOTHING} WHERE ${HEAD}`],
      [
        'with its head, and a row of nothing is added',
        `CREATE TABLE kept AS SELECT * FROM validators WHERE ${HEAD}; DELETE FROM validators WHERE ${HEAD};
         UPDATE kept SET id = id + 100, ${NOTHING}, seal = X''; INSERT INTO validators SELECT * FROM kept`,
      ],
    ])(
      'all rows of a key are deleted, %s: it is no new key, and none is new while a head is gone',
      async (_, change) => {
        await recordHistories();
        await tamper(`DELETE FROM blocks WHERE ${ROWS}`, `DELETE FROM attestations WHERE ${ROWS}`, change);
        for await (const said of processes()) {
          await expectDamaged(block(1, 30, 'rival'), vote(1, 5, 6, 'rival'));
          if (change !== '' || store.looksAtNewest) {
            await expectDamaged(block(1, 10, 'rival'), vote(1, 3, 4, 'rival'));
            await expectDamaged(block(1, 31, 'next'), vote(1, 6, 7, 'next'));
          }
          expect(await verdict(block(9, 40, 'new'))).toBe(change === '' ? said : DAMAGED.reason);
          expect(await verdict(block(2, 40, 'b'))).toBe(said);
        }
        await expect(exports()).rejects.toMatchObject(DAMAGED);
        await expect(exports(1)).rejects.toMatchObject(DAMAGED);
        expect(await exports(2)).toHaveLength(1);
        await expect(imports(1)).rejects.toMatchObject(DAMAGED);
        if (change !== '') await expect(backend.endTenures([publicKeyOf(1)])).rejects.toMatchObject(DAMAGED);
      },
    );

    it.each([
      'UPDATE metadata SET floor_slot = 5',
      'UPDATE metadata SET floor_slot = NULL',
      'UPDATE metadata SET floor_slot = NULL, floor_source_epoch = NULL, floor_target_epoch = NULL',
      `UPDATE metadata SET store_id = ${ZEROED}`,
      "UPDATE metadata SET incarnation = 'x'",
      'UPDATE metadata SET validator_count = validator_count + 1',
      'UPDATE metadata SET validator_count = validator_count - 1',
      'DELETE FROM metadata',
      ...(store.ownRecord ?? []),
    ])(
      'the record of the store is not believed when it was changed: nothing is signed, and it is not opened again: %s',
      async (change) => {
        await recordHistories();
        await backend.jump({ slot: 500, sourceEpoch: 14, targetEpoch: 15 });
        await tamper(change);
        for (const slot of [400, 600])
          await expect(checkOne(backend, block(1, slot, 'b'))).rejects.toMatchObject(DAMAGED);
        await expect(backend.identity()).rejects.toMatchObject(DAMAGED);
        await expect(backend.incarnate('', 'x')).rejects.toMatchObject(DAMAGED);
        await expect(exports()).rejects.toMatchObject(DAMAGED);
        await backend.close();
        await expect(open()).rejects.toMatchObject(store.refusal);
      },
    );
  });
}
