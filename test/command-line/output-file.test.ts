// Files of `--output`: whole or not at all, for their owner alone, never over another one without `--force`.

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withOutput, writeOutput } from '../../common/command-line/output-file.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-output-'));
  path = join(folder, 'out.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

describe.each([
  [
    'writeOutput',
    (force: boolean, text: () => Promise<string>) =>
      writeOutput(path, force, async (file) => file.writeFile(await text())),
  ],
  ['withOutput', (force: boolean, text: () => Promise<string>) => withOutput(path, force, text)],
])('%s', (_, write) => {
  it('writes a file that only its owner reads', async () => {
    await write(false, async () => 'new');
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['out.json']);
  });

  it('leaves a file that is there, before anything is done, and overwrites it with --force', async () => {
    writeFileSync(path, 'old');
    let asked = false;
    const text = async (): Promise<string> => {
      asked = true;
      return 'new';
    };
    await expect(write(false, text)).rejects.toThrow('exists already: name another file, or overwrite it with --force');
    expect({ asked, text: readFileSync(path, 'utf8') }).toEqual({ asked: false, text: 'old' });
    await write(true, text);
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(readdirSync(folder)).toEqual(['out.json']);
  });

  it('never replaces what is no regular file', async () => {
    execFileSync('mkfifo', [path]);
    await expect(write(true, async () => 'new')).rejects.toThrow('is no regular file: name another one');
    expect([readdirSync(folder), statSync(path).isFIFO()]).toEqual([['out.json'], true]);
  });

  it.each([false, true])('leaves nothing behind when the work fails (force %s), and no file broken', async (force) => {
    if (force) writeFileSync(path, 'old');
    const fails = async (): Promise<string> => {
      throw new Error('the signer refused');
    };
    await expect(write(force, fails)).rejects.toThrow('the signer refused');
    expect(force ? readFileSync(path, 'utf8') : existsSync(path)).toBe(force ? 'old' : false);
    expect(readdirSync(folder).filter((name) => name.includes('partial'))).toEqual([]);
  });
});

it('a file that somebody makes meanwhile is not replaced', async () => {
  const written = writeOutput(path, false, async (file) => {
    await file.writeFile('ours');
    writeFileSync(path, 'theirs');
  });
  await expect(written).rejects.toThrow('exists already');
  expect(readFileSync(path, 'utf8')).toBe('theirs');
  expect(readdirSync(folder)).toEqual(['out.json']);
});

it('a folder that is not there is named', async () => {
  await expect(withOutput(join(folder, 'none/out.json'), false, async () => '')).rejects.toThrow(
    /out\.json cannot be written \(ENOENT\)/,
  );
});

it.each([
  ['writeOutput', () => writeOutput(folder, true, async () => undefined)],
  ['withOutput', () => withOutput(folder, true, () => Promise.reject(new Error('it was asked')))],
])('%s refuses a folder before anything is done, with --force too', async (_, write) => {
  await expect(write()).rejects.toThrow('cannot be written (EISDIR)');
});

it('what was answered once stays when it cannot be put in place', async () => {
  const written = withOutput(path, true, async () => {
    mkdirSync(path);
    return 'the only copy';
  });
  await expect(written).rejects.toThrow(/cannot be replaced \(EISDIR\): what was to be in it is in .*\.partial$/);
  const [partial = ''] = readdirSync(folder).filter((name) => name.endsWith('.partial'));
  expect(readFileSync(join(folder, partial), 'utf8')).toBe('the only copy');
});
