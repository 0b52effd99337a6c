// The archives of a release, as other people's programs read them, and what does not fit into one.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ArchiveEntry, file } from '../../tools/release/archive/entry.ts';
import { writeTar } from '../../tools/release/archive/tar.ts';

const TIME_SECONDS = 1_790_000_000;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-archive-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const tar = (entries: readonly ArchiveEntry[]): Buffer => writeTar(entries, TIME_SECONDS);

it('tar unpacks what was packed: contents, modes, links, folders, times, and a path of more than 100 bytes', () => {
  const long = `${'a'.repeat(90)}/${'b'.repeat(60)}/${'c'.repeat(60)}`;
  const entries: ArchiveEntry[] = [
    file('program', 'x'.repeat(513), 0o755),
    file(long, 'long'),
    { type: 'symlink', path: 'link', target: 'program' },
    { type: 'directory', path: 'own', mode: 0o700 },
    file('empty', ''),
  ];
  execFileSync('tar', ['-xp', '-C', folder], { input: tar(entries) });
  expect(readFileSync(join(folder, 'link'), 'utf8')).toBe('x'.repeat(513));
  expect(readFileSync(join(folder, long), 'utf8')).toBe('long');
  expect(statSync(join(folder, 'program')).mode & 0o777).toBe(0o755);
  expect(statSync(join(folder, 'own')).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, 'empty')).mtimeMs).toBe(TIME_SECONDS * 1000);
  expect(tar(entries.toReversed()).equals(tar(entries))).toBe(true);
});

it.each([
  ['a path twice', [file('a', ''), file('a', '')], 'a is there twice'],
  ['a path out of the archive', [file('../a', '')], 'has a ..'],
  ['an absolute path', [file('/a', '')], 'begins or ends with a slash'],
  ['a file beneath a file', [file('a', ''), file('a/b', '')], 'a has entries beneath it and is no folder'],
  ['a name that is too long', [file('n'.repeat(101), '')], 'cannot be cut at a slash'],
  [
    'a path that is too long',
    [file(`${'p/'.repeat(80)}${'q'.repeat(99)}`, '')],
    'does not fit into an archive: prefix',
  ],
  ['a target that is too long', [{ type: 'symlink', path: 'l', target: 't'.repeat(101) }], 'does not fit'],
] satisfies readonly (readonly [string, readonly ArchiveEntry[], string])[])(
  '%s is refused',
  (_what, entries, problem) => {
    expect(() => tar(entries)).toThrow(problem);
  },
);
