// The mark of a database that was closed in order: any other database is in doubt, until a jump.

import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqliteBackend } from '../../../../signer/slashing/sqlite/backend.ts';
import { block, checkOne, MAIN_ROOT, quietLog, verdictName } from '../../../support/slashing.ts';

const FLOOR = { slot: 100, sourceEpoch: 3, targetEpoch: 4 };

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-mark-'));
  path = join(folder, 'database.sqlite');
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = () => openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
/** Opened, used and closed in order; whether it was in doubt. */
async function used(slot: number): Promise<boolean> {
  const backend = await open();
  const isInDoubt = backend.doubt !== undefined;
  expect(verdictName(await checkOne(backend, block(1, slot, 'a')))).toBe('safe');
  await backend.close();
  return isInDoubt;
}

it('a new database, and one that was closed in order, are not in doubt, however often', async () => {
  for (const slot of [1, 2, 3]) expect(await used(slot)).toBe(false);
});

it.each([
  ['without its mark', () => rmSync(`${path}-closed`)],
  ['with the mark of an earlier end', () => writeFileSync(`${path}-closed`, 'earlier mark')],
  ['that was written over', () => writeFileSync(path, readFileSync(path))],
  ['whose inode was changed', () => [0o640, 0o600].forEach((mode) => void chmodSync(path, mode))],
  [
    'that is a copy, with its mark',
    () => {
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
  ],
  ['beside a log of another', () => writeFileSync(`${path}-wal`, '')],
  ['that is new where there was one', () => rmSync(path)],
])('a database %s is in doubt, and stays so until a jump', async (_how, change) => {
  await used(1);
  change();
  for (const slot of [2, 3]) expect(await used(slot)).toBe(true);
  const backend = await open();
  expect(backend.doubt?.cause).toMatch(/^(unclean_end|other_file)$/);
  await backend.jump(FLOOR);
  expect(backend.doubt).toBeUndefined();
  await backend.close();
  expect(await used(101)).toBe(false);
});

it('an older copy of file and mark, put back with all times that can be set, is in doubt', async () => {
  await used(1);
  const backup = join(folder, 'backup');
  for (const suffix of ['', '-closed']) cpSync(path + suffix, backup + suffix, { preserveTimestamps: true });
  await used(2);
  const { ino } = statSync(path);
  for (const suffix of ['', '-closed']) {
    copyFileSync(backup + suffix, path + suffix); // into the same inode, which cpSync would replace
    const { atime, mtime } = statSync(backup + suffix);
    utimesSync(path + suffix, atime, mtime);
  }
  expect(statSync(path).ino).toBe(ino);
  expect((await open()).doubt).toEqual({ cause: 'unclean_end' });
});

it('a database that was closed long ago, or in a time to come, is in doubt, with its mark, also after a command', async () => {
  const at = (now: number) =>
    openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT, mostAwayMs: 1_000 }, { log: quietLog, now: () => now });
  await (await at(10_000)).close();
  const soon = await at(11_000);
  expect(soon.doubt).toBeUndefined();
  await soon.close();
  const late = await at(12_001);
  expect(late.doubt).toEqual({ cause: 'late_start', facts: { closed_seconds_ago: 1 } });
  await late.close();
  // It stays in doubt: nothing that opens it in between may settle that.
  const next = await at(12_002);
  expect(next.doubt).toEqual({ cause: 'unclean_end' });
  await next.jump(FLOOR);
  await next.close();
  expect((await at(12_000)).doubt?.cause).toBe('late_start');
});

it('a start that is refused leaves a good mark where it is', async () => {
  await used(1);
  const other = { path, genesisValidatorsRoot: `0x${'99'.repeat(32)}` };
  await expect(openSqliteBackend(other, { log: quietLog })).rejects.toThrow('another network');
  expect(await used(2)).toBe(false);
});
