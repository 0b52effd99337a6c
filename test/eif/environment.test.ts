// The pinned build environment (docs/guides/reproduce.md): every library that goes into an image, and every header of
// C that is compiled in, is of a package that is pinned; one moment of the archive is named everywhere; the base image
// has no default that nobody looked up.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hostArchitecture } from '../../eif/host.ts';
import { findLibraries } from '../../eif/libraries.ts';
import { readNode } from '../../eif/node-binary.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const onDebian = spawnSync('dpkg-query', ['-W', 'libc6']).status === 0;

function read(path: string): string {
  return readFileSync(`${ROOT}/${path}`, 'utf8');
}

const packages = new Map(
  read('eif/environment/packages.txt')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split('=') as [name: string, version: string]),
);

it('names each package once, at a version', () => {
  const lines = read('eif/environment/packages.txt').match(/^[^#\n].*$/gm) ?? [];
  for (const line of lines) expect(line).toMatch(/^[a-z0-9][a-z0-9+.-]+=[0-9][A-Za-z0-9.+:~-]*$/);
  expect(packages.size).toBe(lines.length);
});

it('the base has to be named, and the moment of the archive is one', () => {
  const container = read('eif/environment/Containerfile');
  expect(container).toMatch(/^ARG BASE\nFROM \$\{BASE\}$/m);
  const [, snapshot] = /^ARG SNAPSHOT=(\d{8}T\d{6}Z)$/m.exec(container) ?? [];
  expect(read('docs/guides/reproduce.md')).toContain(`/archive/debian/${snapshot}\n`);
  expect(read('docs/guides/reproduce.md')).not.toMatch(/sha256:[0-9a-f]{64}/);
});

describe.runIf(onDebian && process.platform === 'linux')('on Debian', () => {
  const owner = (path: string): string[] => {
    const { stdout } = spawnSync('dpkg-query', ['-S', path, path.replace(/^\/lib/, '/usr/lib')], { encoding: 'utf8' });
    // Debian 13 says first where libc6 has diverted a file to.
    return [...stdout.matchAll(/^(?!diversion )([^:, ]+)/gm)].map(([, name = '']) => name);
  };

  it('every library of Node.js is of a pinned package', () => {
    const architecture = hostArchitecture();
    const libraries = findLibraries(new Map([['node', readNode(ROOT, architecture).data]]), architecture);
    expect(libraries.length).toBeGreaterThan(3);
    for (const { path } of libraries) expect([...packages.keys()]).toEqual(expect.arrayContaining(owner(path)));
    expect(libraries.every(({ path }) => owner(path).length > 0)).toBe(true);
  });
});
