// Which commit a release names, and which time its files bear: git's word, or the caller's where git has none.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '../../signer/api/version.ts';
import { isoTime, originOf } from '../../tools/release/origin.ts';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const TIME_SECONDS = 1_790_000_000;

let folder = '';
let checkout = '';
let commit = '';

function git(...args: readonly string[]): string {
  const date = `${TIME_SECONDS} +0000`;
  const who = ['-c', 'user.name=TEST', '-c', 'user.email=TEST', '-c', 'commit.gpgsign=false'];
  const env = { PATH: process.env['PATH'], HOME: folder, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  return execFileSync('git', ['-C', checkout, ...who, ...args], { encoding: 'utf8', env }).trim();
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-origin-'));
  checkout = join(folder, 'checkout');
  mkdirSync(join(checkout, 'within'), { recursive: true });
  git('init', '--quiet');
  writeFileSync(join(checkout, '.gitignore'), 'build\n');
  writeFileSync(join(checkout, 'source'), 'one');
  git('add', '--all');
  git('commit', '--quiet', '--message=TEST');
  commit = git('rev-parse', 'HEAD');
});
afterAll(() => rmSync(folder, { recursive: true }));

const none = { commit: undefined, env: {} };

describe('in a checkout', () => {
  it('is the commit, at its time', () => {
    writeFileSync(join(checkout, 'build'), 'ignored');
    const origin = originOf(checkout, none);
    expect(origin).toEqual({ version: VERSION, commit, timeSeconds: TIME_SECONDS });
    expect(isoTime(origin)).toBe('2026-09-21T14:13:20Z');
  });

  it('says that sources were changed or added', () => {
    writeFileSync(join(checkout, 'added'), '');
    expect(originOf(checkout, none).commit).toBe(`${commit}-modified`);
    rmSync(join(checkout, 'added'));
    writeFileSync(join(checkout, 'source'), 'two');
    expect(originOf(checkout, none).commit).toBe(`${commit}-modified`);
    git('checkout', '--quiet', 'source');
    expect(originOf(checkout, none).commit).toBe(commit);
  });

  it('takes another time, and no other commit', () => {
    const env = { SOURCE_DATE_EPOCH: '1' };
    expect(originOf(checkout, { ...none, env }).timeSeconds).toBe(1);
    expect(() => originOf(checkout, { ...none, commit: COMMIT })).toThrow('for sources that git does not know');
  });
});

describe('elsewhere', () => {
  it('is unknown, also within somebody else’s checkout', () => {
    const unknown = { version: VERSION, commit: 'unknown', timeSeconds: 0 };
    expect([folder, join(checkout, 'within')].map((root) => originOf(root, none))).toEqual([unknown, unknown]);
  });

  it('is what the caller says, when it is a commit and a time', () => {
    const env = { SOURCE_DATE_EPOCH: String(TIME_SECONDS) };
    expect(originOf(folder, { commit: COMMIT, env })).toEqual({
      version: VERSION,
      commit: COMMIT,
      timeSeconds: TIME_SECONDS,
    });
    expect(() => originOf(folder, { commit: 'main', env })).toThrow('main is no commit');
    for (const time of ['', '-1', 'now', '99999999999']) {
      expect(() => originOf(folder, { ...none, env: { SOURCE_DATE_EPOCH: time } })).toThrow('SOURCE_DATE_EPOCH');
    }
  });
});
