// What an image takes from packages is what the lockfile names: a file that is not of the published tarball is refused,
// and a tarball that is not in npm's cache leaves its package unverified.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Input, inputOf } from '../../eif/inputs.ts';
import { cacheOfNpm, holdPackages } from '../../eif/packages.ts';
import { PROJECT_ROOT } from '../support/addon.ts';

const CACHE = cacheOfNpm(PROJECT_ROOT);
const ZOD = 'node_modules/zod/package.json';
const BLST = 'node_modules/c-kzg/deps/blst/src/server.c';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'strongroom-packages-'));
  for (const part of ['package-lock.json', 'node_modules/zod', 'node_modules/c-kzg'])
    cpSync(join(PROJECT_ROOT, part), join(root, part), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true }));

const input = (path: string): Input => inputOf(path, readFileSync(join(root, path)));

/** With another content for the time of a call. */
function altered<Result>(path: string, run: () => Result): Result {
  const file = join(root, path);
  const before = readFileSync(file);
  writeFileSync(file, `${before}/* TAMPERED */\n`);
  try {
    return run();
  } finally {
    writeFileSync(file, before);
  }
}

function refused(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    const { message, details } = error as { message: string; details: readonly string[] };
    return [message, ...details].join('\n');
  }
  return 'it was not refused';
}

it('files as they were published are verified; sources of the project are passed over', () => {
  const inputs = [input(ZOD), { path: 'signer/main.ts', sha256: '00', size: 1 }];
  expect(holdPackages(root, inputs, CACHE)).toEqual({ unverified: [] });
});

it('a file with other bytes is refused by its name', () => {
  const said = altered(ZOD, () => refused(() => holdPackages(root, [input(ZOD)], CACHE)));
  expect(said).toMatch(/packages are not those that the lockfile names/);
  expect(said).toContain(`\n${ZOD}\n`);
  expect(said).toContain('npm ci');
});

it('a file that was never published is refused', () => {
  const path = 'node_modules/zod/more.js';
  expect(refused(() => holdPackages(root, [{ path, sha256: '00', size: 1 }], CACHE))).toContain(`\n${path}\n`);
});

it('a file of a package that the lockfile does not have is refused', () => {
  const path = 'node_modules/left-pad/index.js';
  const said = refused(() => holdPackages(root, [{ path, sha256: '00', size: 1 }], CACHE));
  expect(said).toContain(`${path} is of no package of the lockfile`);
});

it('the sources of the addon count though no bundle names them', () => {
  expect(altered(BLST, () => refused(() => holdPackages(root, [], CACHE)))).toContain(`\n${BLST}\n`);
});

it('without the tarball a package is unverified, and so it is when other bytes lie in its place', () => {
  const cache = join(root, 'cache');
  expect(holdPackages(root, [input(ZOD)], cache)).toEqual({ unverified: ['node_modules/c-kzg', 'node_modules/zod'] });
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string }>;
  };
  const digest = packages['node_modules/zod']?.integrity?.replace('sha512-', '') ?? '';
  const hex = Buffer.from(digest, 'base64').toString('hex');
  const folder = join(cache, '_cacache/content-v2/sha512', hex.slice(0, 2), hex.slice(2, 4));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, hex.slice(4)), 'another tarball');
  expect(holdPackages(root, [input(ZOD)], cache).unverified).toContain('node_modules/zod');
});
