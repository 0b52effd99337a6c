// Imports into SQLite go in steps, so that checks go on: what changes between two steps counts, and no step does much.

import { describe, expect, it } from 'vitest';
import { rowIntegrity } from '../../../signer/slashing/history/codes.ts';
import { KEPT_ENTRIES } from '../../../signer/slashing/interchange/reduce.ts';
import { STEP_ENTRIES } from '../../../signer/slashing/operations/store.ts';
import type { ValidatorHistory } from '../../../signer/slashing/types.ts';
import { block, checkOne, history, publicKeyOf, verdictName, vote } from '../../support/slashing.ts';
import { MANY, open, openHere } from './import-set-up.ts';

describe('what changes between two steps', () => {
  const imported = history(
    1,
    [
      [500, 'f'],
      [600, 'f'],
    ],
    [],
  );

  /** Turns until it is over; `change` is made in one of them. Whether the entries were written by then. */
  async function importWith(changedAt: number, change: (database: ReturnType<typeof openHere>) => unknown) {
    let [turns, isWritten, isChanging] = [0, true, false];
    const database = openHere(async () => {
      if (isChanging) return;
      if (turns === changedAt) {
        isWritten = count() > 0;
        isChanging = true;
        await change(database);
        isChanging = false;
      }
      turns += 1;
    });
    const count = () => Number(database.connection.prepare('SELECT count(*) AS blocks FROM blocks').get()?.['blocks']);
    database.stage(1, imported);
    await database.merge(1);
    expect(count()).toBe(2);
    return { ...database, turns, isWritten };
  }

  it('a key that is retired meanwhile stays retired', async () => {
    let retiredBefore = 0;
    for (let turn = 0, turns = 1; turn < turns; turn++) {
      const result = await importWith(turn, ({ operations }) => operations.endTenures([imported.publicKey]));
      turns = result.turns;
      retiredBefore += result.isWritten ? 0 : 1;
      expect([...(await result.operations.tenures([imported.publicKey]))]).toEqual([[imported.publicKey, 1]]);
      result.close();
    }
    expect(retiredBefore).toBeGreaterThanOrEqual(3);
  });

  it('a floor that is raised meanwhile counts: nothing up to it is a repeat', async () => {
    for (let turn = 0, turns = 1; turn < turns; turn++) {
      const result = await importWith(turn, ({ operations }) =>
        operations.jump({ slot: 1000, sourceEpoch: 30, targetEpoch: 31 }),
      );
      turns = result.turns;
      const roots = result.connection.prepare('SELECT count(signing_root) AS roots FROM blocks').get()?.['roots'];
      expect([turn, roots]).toEqual([turn, result.isWritten ? 2 : 0]);
      result.close();
    }
  });

  it('a block that is signed meanwhile counts: the file makes it no repeat, and its rivals stay refused', async () => {
    for (let turn = 0, turns = 1; turn < turns; turn++) {
      const result = await importWith(turn, ({ check }) => check([block(1, 500, 'n')]));
      turns = result.turns;
      const verdicts = ['n', 'f', 'x'].map((root) => result.check([block(1, 500, root)]).map(verdictName)[0]);
      if (result.isWritten) expect([turn, ...verdicts]).toEqual([turn, 'double_block', 'repeat', 'double_block']);
      else expect([turn, ...verdicts]).toEqual([turn, 'double_block', 'double_block', 'double_block']);
      result.close();
    }
  });
});

describe(`${MANY} entries of one key`, () => {
  async function* parts(): AsyncGenerator<ValidatorHistory> {
    for (let first = 0; first < MANY; first += STEP_ENTRIES) yield partFrom(first);
  }

  function partFrom(first: number): ValidatorHistory {
    const epochs = Array.from({ length: STEP_ENTRIES }, (_, index) => first + index);
    return {
      publicKey: publicKeyOf(1),
      blocks: [],
      attestations: epochs.map((epoch) => ({ sourceEpoch: epoch, targetEpoch: epoch + 1, signingRoot: null })),
    };
  }

  it('are merged in steps of some thousand', async () => {
    const steps: number[] = [];
    let handled = 0;
    const { stage, merge, close } = openHere((entries = Number.POSITIVE_INFINITY) => {
      handled += entries;
      if (handled < STEP_ENTRIES) return;
      steps.push(Number.isFinite(handled) ? handled : 0);
      handled = 0;
    });
    for (let first = 0; first < MANY; first += STEP_ENTRIES) stage(1, partFrom(first));
    expect(await merge(1)).toMatchObject({ validators: 1 });
    close();
    expect(steps.length).toBeGreaterThanOrEqual(MANY / STEP_ENTRIES);
    expect(Math.max(...steps)).toBeLessThanOrEqual(2 * (STEP_ENTRIES + KEPT_ENTRIES));
  });

  it('no step computes and writes much: codes and rows of each', async () => {
    let codes = 0;
    const own = rowIntegrity({ genesisValidatorsRoot: new Uint8Array(32) });
    const before = { codes: 0, rows: 0 };
    const longest = { codes: 0, rows: 0, both: 0 };
    let handled = 0;
    const endStep = () => {
      const step = { codes: codes - before.codes, rows: rows() - before.rows };
      longest.codes = Math.max(longest.codes, step.codes);
      longest.rows = Math.max(longest.rows, step.rows);
      longest.both = Math.max(longest.both, step.codes + step.rows);
      [before.codes, before.rows, handled] = [codes, rows(), 0];
    };
    const { connection, stage, merge, close } = openHere(
      (entries = STEP_ENTRIES) => {
        handled += entries;
        if (handled >= STEP_ENTRIES) endStep(); // fewer entries are no turn yet
      },
      (...given) => {
        codes += 1;
        return own.hash(...given);
      },
    );
    const rows = () => Number(connection.prepare('SELECT total_changes() AS rows').get()?.['rows']);
    // The first import gives the key records; what the second says of the same places is another root, or beyond.
    for (const [importId, first] of [
      [1, 0],
      [2, KEPT_ENTRIES / 2],
    ] as const) {
      const parts = Array.from({ length: 4 }, (_, part) => partFrom(first + part * STEP_ENTRIES));
      const blocks = (part: ValidatorHistory) =>
        part.attestations.map(({ targetEpoch }) => ({ slot: targetEpoch, signingRoot: null }));
      for (const part of parts) stage(importId, { ...part, blocks: blocks(part) });
      endStep();
      await merge(importId, 'complete');
      endStep();
    }
    close();
    expect(longest.codes).toBeGreaterThan(KEPT_ENTRIES);
    expect(longest.rows).toBeGreaterThan(KEPT_ENTRIES);
    expect(longest.both).toBeLessThanOrEqual(2 * KEPT_ENTRIES + 100);
  });

  it('hold up nobody else', async () => {
    const backend = await open();
    const over = new AbortController();
    const importing = backend.importHistories(parts()).finally(() => {
      over.abort();
    });
    let answered = 0;
    const ofTheKey = new Set<string>();
    for (let slot = 1; !over.signal.aborted; slot++) {
      expect(verdictName(await checkOne(backend, block(2, slot, 'a')))).toBe('safe');
      if (slot % 20 === 0) ofTheKey.add(verdictName(await checkOne(backend, vote(1, MANY, MANY + 1, 'a'))));
      answered += 1;
    }
    expect(await importing).toMatchObject({ validators: 1, attestations: MANY });
    expect(answered).toBeGreaterThan(MANY / STEP_ENTRIES / 4);
    for (const verdict of ofTheKey) expect(['safe', 'repeat']).toContain(verdict);
    expect((await backend.status()).attestations).toBeLessThan(KEPT_ENTRIES);
    expect(verdictName(await checkOne(backend, vote(1, MANY - 2, MANY - 1, 'x')))).not.toBe('safe');
    expect(verdictName(await checkOne(backend, vote(1, 5, 6, 'x')))).not.toBe('safe');
  });
});
