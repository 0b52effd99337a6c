// What programs need of the system they run on: as the system's own tools see it, and nothing is taken from a file that
// is odd.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ElfError, readElf } from '../../eif/elf.ts';
import { findLibraries } from '../../eif/libraries.ts';
import { PINNED_NODE, readNode } from '../../eif/node-binary.ts';
import { PROJECT_ROOT } from '../support/addon.ts';
import { lacking } from '../support/needs.ts';
import { NODE_OF_IMAGES } from './project-copy.ts';

const onLinux = process.platform === 'linux' && process.arch === 'x64';

describe.runIf(onLinux)('an ELF file', () => {
  const node = onLinux ? readFileSync(NODE_OF_IMAGES) : Buffer.alloc(0);

  it.skipIf(lacking('readelf'))('names the libraries and the loader that readelf names', () => {
    const dynamic = execFileSync('readelf', ['--dynamic', '--program-headers', NODE_OF_IMAGES], { encoding: 'utf8' });
    const needed = [...dynamic.matchAll(/\(NEEDED\)\s+Shared library: \[(.+)\]/g)].map(([, name]) => name);
    expect(needed.length).toBeGreaterThan(3);
    expect(readElf(node)).toEqual({
      architecture: 'x86_64',
      interpreter: /program interpreter: (.+)\]/.exec(dynamic)?.[1],
      needed,
      hasSearchPath: false,
    });
  });

  it('that is cut off or changed is refused or read, and never anything else', () => {
    const small = readFileSync('/lib/x86_64-linux-gnu/libdl.so.2');
    for (const length of [0, 6, 63, 64, 100, 500]) expect(() => readElf(small.subarray(0, length))).toThrow(ElfError);
    fc.assert(
      fc.property(fc.nat(1500), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(small);
        changed[at] = byte;
        try {
          readElf(changed);
        } catch (error) {
          expect(error).toBeInstanceOf(ElfError);
        }
      }),
    );
  });
});

describe.runIf(onLinux)('the libraries of an image', () => {
  const node = onLinux ? readFileSync(NODE_OF_IMAGES) : Buffer.alloc(0);

  it('are those that the host’s loader takes', () => {
    const listed = execFileSync('ldd', [NODE_OF_IMAGES], { encoding: 'utf8' });
    const expected = [...listed.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => path);
    const found = findLibraries(new Map([['node', node]]), 'x86_64').map(({ path }) => path);
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  it('a program for another machine, and one that is none, are refused by name', () => {
    expect(() => findLibraries(new Map([['node', node]]), 'aarch64')).toThrow(
      'node is for x86_64, the image for aarch64',
    );
    expect(() => findLibraries(new Map([['thing', Buffer.from('#!/bin/sh')]]), 'x86_64')).toThrow(
      'thing cannot be used',
    );
  });
});

describe('the pinned Node.js', () => {
  it('is of the packages and the version that the lockfile pins', () => {
    const { packages } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version?: string }>;
    };
    for (const { package: name, version, sha256 } of Object.values(PINNED_NODE)) {
      expect(packages[`node_modules/${name}`]?.version).toBe(version);
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  it.runIf(onLinux)('is the one that is installed', () => {
    expect(readNode(PROJECT_ROOT, 'x86_64').data.length).toBeGreaterThan(50_000_000);
  });
});
