// Imports into SQLite are all or nothing, whatever happens in between: kill -9 after any step, damage, and keys that a
// decided import has not reached yet.

import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { writeHistory } from '../../../enclave/slashing/sqlite/history-text.ts';
import { batchChecker } from '../../../enclave/slashing/sqlite/operations/check.ts';
import { importer } from '../../../enclave/slashing/sqlite/operations/import.ts';
import { packBatch, unpackBatch } from '../../../enclave/slashing/sqlite/wire.ts';
import type { SlashingBackend } from '../../../enclave/slashing/types.ts';
import { block, checkOne, stream, verdictName, vote } from '../../support/slashing.ts';
import { IMPORTED } from '../../support/slashing-import-steps.ts';
import { close, folder, IMPORT_STEPS, open, openHere, path, prepare } from './import-set-up.ts';

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

  it('after any step leaves all of it or nothing, for good once it is decided', async () => {
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

  it('what somebody took from a decided import is missed when the database is opened', async () => {
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
  it('of a key that a decided import is not applied to yet: that key is held, all others have it', async () => {
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

  it('of a key that the file names refuses all of the file, and nothing is merged', async () => {
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

it('a key that a decided import is not applied to yet is held: nothing is decided about it', () => {
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
