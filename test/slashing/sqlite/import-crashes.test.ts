// Imports into SQLite are merged key by key: whatever ends one in between, kill -9 after any step or damage, leaves
// some keys merged and the others as they were, never half of a key, and the same import is repeated.

import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { someOf } from '../../support/scale.ts';
import { block, checkOne, history, stream, verdictName, vote } from '../../support/slashing.ts';
import { IMPORTED, LAST_SLOT } from '../../support/slashing-import-steps.ts';
import { close, folder, IMPORT_STEPS, open, openHere, path, prepare } from './import-set-up.ts';

/** Each key is merged in one of the last steps. */
const LAST_STEPS = 12;

/** Which keys refuse everything that the file forbids; the others nothing of it. */
async function merged(backend: SlashingBackend): Promise<number[]> {
  const keys: number[] = [];
  for (const key of [1, 2, 3, 4]) {
    const last = key === 1 ? LAST_SLOT + 100 : LAST_SLOT;
    const slots = [LAST_SLOT - 300, last];
    const verdicts: string[] = [];
    for (const slot of slots) verdicts.push(verdictName(await checkOne(backend, block(key, slot, 'x'))));
    if (verdicts.every((verdict) => verdict !== 'safe')) keys.push(key);
    else expect([key, ...verdicts]).toEqual([key, 'safe', 'safe']);
  }
  return keys;
}

async function expectRecords(backend: SlashingBackend): Promise<void> {
  for (const key of [1, 2, 3]) {
    expect(verdictName(await checkOne(backend, block(key, 100, 'x')))).toBe('double_block');
    expect(verdictName(await checkOne(backend, vote(key, 9, 10, 'x')))).toBe('double_vote');
  }
}

it('kill -9 after any step: the keys before it are merged, the others as they were, and it can be repeated', async () => {
  await prepare();
  const importInto = (copy: string, lastStep: number) => {
    cpSync(path, copy);
    const child = spawnSync(process.execPath, [IMPORT_STEPS, copy, String(lastStep)], { encoding: 'utf8' });
    expect(child.stderr).toBe('');
    return child;
  };
  const count = Number(importInto(join(folder, 'whole.sqlite'), Number.POSITIVE_INFINITY).stdout);
  const steps = Array.from({ length: count }, (_, step) => step);
  const outcomes = new Set<string>();
  for (const lastStep of [...someOf(steps.slice(0, -LAST_STEPS), 6), ...someOf(steps.slice(-LAST_STEPS), 6), count]) {
    const copy = join(folder, `killed-${lastStep}.sqlite`);
    const repeated = join(folder, `repeated-${lastStep}.sqlite`);
    const child = importInto(copy, lastStep);
    expect([lastStep, child.signal]).toEqual([lastStep, lastStep === count ? null : 'SIGKILL']);
    if (child.signal === null) expect(Number(child.stdout)).toBe(count);
    for (const suffix of ['', '-wal']) {
      cpSync(`${copy}${suffix}`, `${repeated}${suffix}`, { force: true });
      if (child.signal === null) break;
    }

    const backend = await open(copy);
    const keys = await merged(backend);
    expect([1, 2, 3, 4].slice(0, keys.length)).toEqual(keys);
    outcomes.add(keys.join(' '));
    await expectRecords(backend);
    await close(backend);

    const again = await open(repeated);
    expect(await again.importHistories(stream(IMPORTED))).toMatchObject({ validators: 5, conflicts: 0 });
    expect(await merged(again)).toEqual([1, 2, 3, 4]);
    await expectRecords(again);
    await close(again);
    const left = new DatabaseSync(repeated);
    expect(left.prepare('SELECT count(*) AS rows FROM staged').get()).toEqual({ rows: 0 });
    left.close();
  }
  expect([...outcomes]).toEqual(['', '1', '1 2', '1 2 3', '1 2 3 4']);
});

describe('damage of a key that the file names', () => {
  it('refuses all of the file, and nothing is merged', async () => {
    await prepare();
    const other = new DatabaseSync(path);
    other.exec('UPDATE blocks SET code = zeroblob(16) WHERE validator = 2');
    other.close();
    const backend = await open();
    await expect(backend.importHistories(stream(IMPORTED))).rejects.toMatchObject({ reason: 'slashing_integrity' });
    expect(verdictName(await checkOne(backend, block(1, LAST_SLOT, 'x')))).toBe('safe');
    expect(verdictName(await checkOne(backend, block(4, LAST_SLOT, 'x')))).toBe('safe');
  });

  it('that comes after it was verified interrupts the merge, which says so', async () => {
    const keys = Array.from({ length: 12 }, (_, index) => index + 1);
    const here = openHere(() => {
      const row = here.connection.prepare('SELECT count(*) AS blocks FROM blocks').get();
      const isBegun = Number(row?.['blocks']) > keys.length;
      if (isBegun) here.connection.exec('UPDATE blocks SET code = zeroblob(16) WHERE validator = 12');
    });
    here.check(keys.map((key) => block(key, 100, 'a')));
    const slots = Array.from({ length: 600 }, (_, index) => [101 + index, 'f'] as const);
    here.stage(1, ...keys.map((key) => history(key, slots, [])));
    await expect(here.merge(1)).rejects.toMatchObject({
      reason: 'slashing_integrity',
      hint: expect.stringMatching(/^the import was interrupted after [1-8] of 12 keys: repeat it$/),
    });
    expect(here.check([block(1, 700, 'x'), block(12, 900, 'x')]).map(verdictName)).toEqual(['double_block', 'safe']);
    here.close();
  });
});

it('between any two steps every key is decided, and what was signed then is refused to its rivals afterwards', async () => {
  let slot = LAST_SLOT;
  const signed: [key: number, slot: number][] = [];
  const here = openHere(() => {
    slot += 1;
    const keys = [1, 2, 3, 4, 99];
    const verdicts = here.check(keys.map((key) => block(key, slot, 'n'))).map(verdictName);
    for (const [index, key] of keys.entries()) {
      if (verdicts[index] === 'safe') signed.push([key, slot]);
      else expect([key, verdicts[index]]).toEqual([1, 'block_below_low_water_mark']);
    }
  });
  here.stage(1, ...IMPORTED);
  expect(await here.merge(1)).toMatchObject({ validators: 5 });
  expect(new Set(signed.map(([key]) => key))).toEqual(new Set([1, 2, 3, 4, 99]));
  for (const [key, at] of signed) {
    expect(here.check([block(key, at, 'rival')]).map(verdictName)).not.toEqual(['safe']);
  }
  for (const key of [1, 2, 3, 4]) {
    expect(here.check([block(key, LAST_SLOT - 10, 'x')]).map(verdictName)).not.toEqual(['safe']);
  }
  here.close();
});

it('when SQLite itself rolls a merge back, no key of it is written behind its back', async () => {
  const here = openHere();
  const votes = () => here.connection.prepare('SELECT * FROM attestations ORDER BY validator, target_epoch').all();
  for (const target of [2, 3]) here.check([1, 2].map((key) => vote(key, target - 1, target, 'a')));
  const before = votes();
  here.connection.exec(`
    CREATE TEMP TRIGGER fault BEFORE UPDATE ON validators WHEN NEW.id = 1 AND NEW.high_target_epoch > 3
    BEGIN SELECT RAISE(ROLLBACK, 'disk I/O error'); END`);
  here.stage(1, history(1, [], [[2, 4, 'x']]), history(2, [], [[3, 5, 'x']]));
  await expect(here.merge(1)).rejects.toThrow();
  expect(votes()).toEqual(before);
  expect(here.connection.isTransaction).toBe(false);
  here.connection.exec('DROP TRIGGER fault');
  expect(await here.merge(1)).toMatchObject({ validators: 2 });
  here.close();
});
