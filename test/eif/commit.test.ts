// The commit that pcrs.json and a release name: git's, where git knows the sources and nothing was changed; what
// somebody vouches for elsewhere; never a guess.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { sourceCommit } from '../../eif/commit.ts';

const folder = mkdtempSync(join(tmpdir(), 'strongroom-commit-'));
const sources = join(folder, 'sources');
const GIVEN = 'ab'.repeat(20);

function git(...args: readonly string[]): string {
  const who = ['-c', 'user.name=test', '-c', 'user.email=test@localhost', '-c', 'commit.gpgsign=false'];
  return execFileSync('git', ['-C', sources, ...who, ...args], { encoding: 'utf8' }).trim();
}

afterAll(() => rmSync(folder, { recursive: true }));

it('is git’s, and says when the sources are not that commit', () => {
  mkdirSync(join(sources, 'inside'), { recursive: true });
  expect(sourceCommit(sources, undefined)).toBe('unknown');
  expect(sourceCommit(sources, GIVEN)).toBe(GIVEN);
  git('init', '-q');
  writeFileSync(join(sources, 'main.ts'), '1');
  git('add', '.');
  git('commit', '-qm', 'one');
  const commit = git('rev-parse', 'HEAD');
  expect(sourceCommit(sources, undefined)).toBe(commit);
  expect(() => sourceCommit(sources, GIVEN)).toThrow('--commit is for sources that git does not know');
  writeFileSync(join(sources, 'main.ts'), '2');
  expect(sourceCommit(sources, undefined)).toBe(`${commit}-modified`);
  expect(sourceCommit(join(sources, 'inside'), undefined)).toBe('unknown'); // somebody else's checkout
  expect(() => sourceCommit(join(sources, 'inside'), 'main')).toThrow('main is no commit');
});

it.each([
  ['assumes to be unchanged', () => git('update-index', '--assume-unchanged', 'main.ts')],
  ['keeps out of a sparse checkout', () => git('update-index', '--skip-worktree', 'main.ts')],
  [
    'makes equal by a filter',
    () => {
      git('config', 'filter.hide.clean', 'printf 1');
      writeFileSync(join(sources, '.git/info/attributes'), '*.ts filter=hide\n');
    },
  ],
])('is not the commit when a file was changed that git %s', (_, hide) => {
  writeFileSync(join(sources, 'main.ts'), '1');
  expect(sourceCommit(sources, undefined)).toBe(git('rev-parse', 'HEAD'));
  hide();
  writeFileSync(join(sources, 'main.ts'), '3');
  try {
    expect(git('status', '--porcelain')).toBe('');
    expect(sourceCommit(sources, undefined)).toBe(`${git('rev-parse', 'HEAD')}-modified`);
  } finally {
    git('update-index', '--no-assume-unchanged', 'main.ts');
    git('update-index', '--no-skip-worktree', 'main.ts');
    rmSync(join(sources, '.git/info/attributes'), { force: true });
  }
});

it('of a checkout of another user is no guess: git does not say it, and the build ends with what to do', () => {
  process.env['GIT_TEST_ASSUME_DIFFERENT_OWNER'] = '1'; // git's own way to test this refusal
  try {
    for (const given of [undefined, GIVEN])
      expect(() => sourceCommit(sources, given)).toThrow('another user owns it (dubious ownership)');
  } finally {
    delete process.env['GIT_TEST_ASSUME_DIFFERENT_OWNER'];
  }
  expect(sourceCommit(sources, undefined)).toMatch(/^[0-9a-f]{40}-modified$/);
});
