// Imports into SQLite: all or nothing whatever happens in between, and in steps, so that checks go on.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rowIntegrity } from '../../../enclave/slashing/history/integrity.ts';
import { KEPT_ENTRIES } from '../../../enclave/slashing/interchange/reduce.ts';
import { openSqliteBackend } from '../../../enclave/slashing/sqlite/backend.ts';
import { batchChecker } from '../../../enclave/slashing/sqlite/check.ts';
import { writeHistory } from '../../../enclave/slashing/sqlite/history-text.ts';
import { importer } from '../../../enclave/slashing/sqlite/import.ts';
import { storeRecord } from '../../../enclave/slashing/sqlite/record.ts';
import { keyRegister } from '../../../enclave/slashing/sqlite/retire.ts';
import { openDatabase } from '../../../enclave/slashing/sqlite/schema.ts';
import { allSteps, STEP_ENTRIES } from '../../../enclave/slashing/sqlite/steps.ts';
import { packBatch, unpackBatch } from '../../../enclave/slashing/sqlite/wire.ts';
import type { SlashingBackend, ValidatorHistory } from '../../../enclave/slashing/types.ts';
import {
  block,
  checkOne,
  history,
  MAIN_ROOT,
  publicKeyOf,
  quietLog,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { IMPORTED } from '../../support/slashing-import-steps.ts';

const IMPORT_STEPS = fileURLToPath(new URL('../../support/slashing-import-steps.ts', import.meta.url));
const MANY = 900_000;

let folder: string;
let path: string;
const backends: SlashingBackend[] = [];

async function open(file = path): Promise<SlashingBackend> {
  const backend = await openSqliteBackend({ path: file, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  backends.push(backend);
  return backend;
}

async function close(backend: SlashingBackend): Promise<void> {
  backends.splice(backends.indexOf(backend), 1);
  await backend.close();
}

/** A database of this process, without a worker. */
function openHere() {
  writeFileSync(path, '');
  const genesisValidatorsRoot = new Uint8Array(32);
  const options = { path, genesisValidatorsRoot, integrity: rowIntegrity({ genesisValidatorsRoot }) };
  return { options, connection: openDatabase(options).connection };
}

/** Keys 1 to 3 have signed something. */
async function prepare(): Promise<void> {
  const backend = await open();
  for (const key of [1, 2, 3]) {
    await checkOne(backend, block(key, 100, 'a'));
    await checkOne(backend, vote(key, 9, 10, 'a'));
  }
  await close(backend);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-import-'));
  path = join(folder, 'slashing_protection.sqlite');
});
afterEach(async () => {
  for (const backend of backends.splice(0)) await backend.close();
  rmSync(folder, { recursive: true });
});

describe('kill -9 in the middle of an import', () => {
  /** Which keys refuse what the file forbids. */
  async function merged(backend: SlashingBackend): Promise<number[]> {
    const keys: number[] = [];
    for (const key of [1, 2, 3, 4]) {
      const last = key === 1 ? 700 : 600;
      const isRefused = verdictName(await checkOne(backend, block(key, last, 'x'))) !== 'safe';
      if (isRefused) keys.push(key);
    }
    return keys;
  }

  test('after any step leaves all of it or nothing, for good once it is decided', async () => {
    await prepare();
    const outcomes: number[] = [];
    for (let lastStep = 0; ; lastStep++) {
      const copy = join(folder, `killed-${lastStep}.sqlite`);
      cpSync(path, copy);
      const child = spawnSync(process.execPath, [IMPORT_STEPS, copy, String(lastStep)], { encoding: 'utf8' });
      const backend = await open(copy);
      expect(child.stderr).toBe('');
      if (child.signal === null) expect(Number(child.stdout)).toBe(lastStep);
      const keys = await merged(backend);
      expect([lastStep, keys]).toEqual([lastStep, keys.length === 0 ? [] : [1, 2, 3, 4]]);
      outcomes.push(keys.length);
      for (const key of [1, 2, 3]) {
        expect(verdictName(await checkOne(backend, block(key, 100, 'x')))).toBe('double_block');
        expect(verdictName(await checkOne(backend, vote(key, 9, 10, 'x')))).toBe('double_vote');
      }
      await close(backend);
      const left = new DatabaseSync(copy);
      expect(left.prepare('SELECT count(*) AS rows FROM staged').get()).toEqual({ rows: 0 });
      left.close();
      if (child.signal === null) break;
    }
    expect(outcomes).toEqual(outcomes.toSorted((one, other) => one - other));
    // The run would prove nothing without kills before and after the decision.
    expect(outcomes.filter((keys) => keys === 0).length).toBeGreaterThan(IMPORTED.length);
    expect(outcomes.filter((keys) => keys > 0).length).toBeGreaterThan(3);
  });

  test('what somebody took from a decided import is missed when the database is opened', async () => {
    await prepare();
    spawnSync(process.execPath, [IMPORT_STEPS, path, String(IMPORTED.length + 4)]);
    const other = new DatabaseSync(path);
    expect(other.prepare('SELECT import_histories FROM metadata').get()).toEqual({ import_histories: IMPORTED.length });
    other.exec('DELETE FROM staged WHERE id = 5');
    other.close();
    await expect(open()).rejects.toThrow(/parts of an import that was decided are missing/);
  });
});

describe('damage', () => {
  test('of a key that a decided import is not applied to yet: that key is held, all others have it', async () => {
    await prepare();
    spawnSync(process.execPath, [IMPORT_STEPS, path, String(IMPORTED.length + 4)]);
    const other = new DatabaseSync(path);
    other.exec('UPDATE blocks SET code = zeroblob(16) WHERE validator = 2');
    other.close();
    for (let opening = 0; opening < 2; opening++) {
      const backend = await open();
      expect(verdictName(await checkOne(backend, block(2, 900, 'x')))).toBe('slashing_unavailable');
      expect(verdictName(await checkOne(backend, block(1, 700, 'x')))).not.toBe('safe');
      expect(verdictName(await checkOne(backend, block(4, 600, 'x')))).not.toBe('safe');
      await close(backend);
    }
  });

  test('of a key that the file names refuses all of the file, and nothing is merged', async () => {
    await prepare();
    const other = new DatabaseSync(path);
    other.exec('UPDATE blocks SET code = zeroblob(16) WHERE validator = 2');
    other.close();
    const backend = await open();
    await expect(backend.importHistories(stream(IMPORTED))).rejects.toMatchObject({ reason: 'slashing_integrity' });
    expect(verdictName(await checkOne(backend, block(1, 700, 'x')))).toBe('safe');
    expect(verdictName(await checkOne(backend, block(4, 600, 'x')))).toBe('safe');
  });
});

test('a key that a decided import is not applied to yet is held: nothing is decided about it', () => {
  const { options, connection } = openHere();
  const imports = importer(connection, options, 3);
  for (const one of IMPORTED) imports.stage(1, [[one.publicKey, writeHistory(one)]]);
  const check = batchChecker(connection, options, imports.isHeld);
  const batch = () => [1, 2, 3, 4, 99].map((key) => block(key, 900 + slot++, 'n'));
  const asked = () =>
    check(unpackBatch(packBatch(batch(), []))).map((verdict) =>
      verdictName(verdict).replace('slashing_unavailable', '-'),
    );
  let slot = 0;
  const seen = new Set<string>();
  for (const _ of imports.merge(1, IMPORTED.length, 'by_key')) seen.add(asked().join(' '));
  expect(seen).toContain('safe safe safe safe safe');
  expect(seen).toContain('- - - - safe');
  expect([...seen].filter((verdicts) => /-/.test(verdicts)).length).toBeGreaterThan(1);
  expect(asked()).toEqual(['safe', 'safe', 'safe', 'safe', 'safe']);
  connection.close();
});

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

  test('a key that is retired meanwhile stays retired', () => {
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

  test('a floor that is raised meanwhile counts: nothing up to it is a repeat', () => {
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

  test('are merged in steps of some thousand', async () => {
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

  test('no step computes and writes much: codes and rows of each', () => {
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

  test('hold up nobody else', async () => {
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
