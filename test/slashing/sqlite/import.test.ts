// Imports into SQLite go in steps, so that checks go on: what changes between two steps counts, and no step does much.

import { describe, expect, it } from 'vitest';
import { KEPT_ENTRIES } from '../../../enclave/slashing/interchange/reduce.ts';
import { writeHistory } from '../../../enclave/slashing/sqlite/history-text.ts';
import { importer } from '../../../enclave/slashing/sqlite/operations/import.ts';
import { keyRegister } from '../../../enclave/slashing/sqlite/operations/retire.ts';
import { STEP_ENTRIES } from '../../../enclave/slashing/sqlite/steps.ts';
import { storeRecord } from '../../../enclave/slashing/sqlite/tables/record.ts';
import type { ValidatorHistory } from '../../../enclave/slashing/types.ts';
import { block, checkOne, history, publicKeyOf, verdictName, vote } from '../../support/slashing.ts';
import { allSteps } from './all-steps.ts';
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

  /** Steps until it is over; `change` is made after one of them. Whether the entries were written by then. */
  function importWith(changedAfter: number, change: (database: ReturnType<typeof openHere>) => void) {
    const database = openHere();
    const { connection, options } = database;
    const imports = importer(connection, options, 1);
    imports.stage(1, [[imported.publicKey, writeHistory(imported)]]);
    const count = () => Number(connection.prepare('SELECT count(*) AS blocks FROM blocks').get()?.['blocks']);
    let [steps, isWritten] = [0, true];
    for (const _ of imports.merge(1, 1, 'by_key')) {
      if (steps === changedAfter) {
        isWritten = count() > 0;
        change(database);
      }
      steps += 1;
    }
    expect(count()).toBe(2);
    return { ...database, steps, isWritten };
  }

  it('a key that is retired meanwhile stays retired', () => {
    let retiredBefore = 0;
    for (let step = 0, steps = 1; step < steps; step++) {
      const result = importWith(step, ({ connection, options }) => {
        allSteps(keyRegister(connection, options).retire([imported.publicKey]));
      });
      steps = result.steps;
      retiredBefore += result.isWritten ? 0 : 1;
      const register = keyRegister(result.connection, result.options);
      expect(allSteps(register.retired([imported.publicKey]))).toEqual([imported.publicKey]);
      result.connection.close();
    }
    expect(retiredBefore).toBeGreaterThanOrEqual(3);
  });

  it('a floor that is raised meanwhile counts: nothing up to it is a repeat', () => {
    for (let step = 0, steps = 1; step < steps; step++) {
      const result = importWith(step, ({ connection, options }) => {
        const records = storeRecord(connection, options);
        records.write({ ...records.read(), floor: { slot: 1000, sourceEpoch: 30, targetEpoch: 31 } });
      });
      steps = result.steps;
      const roots = result.connection.prepare('SELECT count(signing_root) AS roots FROM blocks').get()?.['roots'];
      expect([step, roots]).toEqual([step, result.isWritten ? 2 : 0]);
      result.connection.close();
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
    const { options, connection } = openHere();
    const imports = importer(connection, options);
    for (let first = 0; first < MANY; first += STEP_ENTRIES) {
      imports.stage(1, [[publicKeyOf(1), writeHistory(partFrom(first))]]);
    }
    const steps: number[] = [...imports.merge(1, MANY / STEP_ENTRIES, 'by_key')];
    connection.close();
    expect(steps.length).toBeGreaterThanOrEqual(MANY / STEP_ENTRIES);
    expect(Math.max(...steps)).toBeLessThanOrEqual(2 * (STEP_ENTRIES + KEPT_ENTRIES));
  });

  it('no step computes and writes much: codes and rows of each', () => {
    const { options, connection } = openHere();
    let codes = 0;
    const { integrity } = options;
    const hash: typeof integrity.hash = (...given) => {
      codes += 1;
      return integrity.hash(...given);
    };
    const imports = importer(connection, { ...options, integrity: { ...integrity, hash } });
    const rows = () => Number(connection.prepare('SELECT total_changes() AS rows').get()?.['rows']);
    const longest = { codes: 0, rows: 0, both: 0 };
    // The first import gives the key records; what the second says of the same places is another root, or beyond.
    for (const [importId, first] of [
      [1, 0],
      [2, KEPT_ENTRIES / 2],
    ] as const) {
      const parts = Array.from({ length: 4 }, (_, part) => partFrom(first + part * STEP_ENTRIES));
      const blocks = (part: ValidatorHistory) =>
        part.attestations.map(({ targetEpoch }) => ({ slot: targetEpoch, signingRoot: null }));
      for (const part of parts)
        imports.stage(importId, [[part.publicKey, writeHistory({ ...part, blocks: blocks(part) })]]);
      const steps = imports.merge(importId, parts.length, 'complete');
      for (let isOver = false; !isOver; ) {
        const [codesBefore, rowsBefore] = [codes, rows()];
        isOver = steps.next().done === true;
        const step = { codes: codes - codesBefore, rows: rows() - rowsBefore };
        longest.codes = Math.max(longest.codes, step.codes);
        longest.rows = Math.max(longest.rows, step.rows);
        longest.both = Math.max(longest.both, step.codes + step.rows);
      }
    }
    connection.close();
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
    for (const verdict of ofTheKey) expect(['safe', 'repeat', 'slashing_unavailable']).toContain(verdict);
    expect((await backend.status()).attestations).toBeLessThan(KEPT_ENTRIES);
    expect(verdictName(await checkOne(backend, vote(1, MANY - 2, MANY - 1, 'x')))).not.toBe('safe');
    expect(verdictName(await checkOne(backend, vote(1, 5, 6, 'x')))).not.toBe('safe');
  });
});
