// The arrows of the tree (docs/architecture.md): what a folder may import. A wrong arrow is a design fault.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const TOP_FOLDERS = [
  'bin',
  'ceremony',
  'command-line',
  'eif',
  'enclave',
  'formats',
  'observe',
  'operator',
  'parent-proxy',
];
/** Everything may use them; they use only themselves. */
const LEAVES = ['command-line/', 'formats/', 'observe/'];

/** What each top-level folder may import besides itself. `enclave/api` is the wire contract. */
const TOP_ARROWS: Readonly<Record<string, readonly string[]>> = {
  bin: [
    'enclave/api/version.ts',
    'enclave/main.ts',
    'operator/main.ts',
    'parent-proxy/main.ts',
    'eif/main.ts',
    'ceremony/main.ts',
    'demo/rehearse.ts',
  ],
  ceremony: [],
  'command-line': ['formats/'],
  eif: ['ceremony/', 'enclave/api/version.ts'],
  enclave: ['ceremony/'],
  operator: ['enclave/api/', 'ceremony/'],
  // Both ends of a vsock stream are made by the same code; nothing of what it imports is secret or signs.
  'parent-proxy': ['enclave/api/', 'enclave/native/'],
};

/** They wire the rest together, and each other. */
const WIRING = ['main.ts', 'boot', 'commands'];

/** Folders of enclave/, from the top: each may import the ones below it and `api`. */
const ENCLAVE_ORDER = [
  WIRING,
  ['http', 'config'],
  ['signing', 'chamber', 'auth'],
  ['slashing', 'keys'],
  ['aws', 'tls', 'harden'],
  ['tee'],
  ['native'],
  ['metrics'],
  ['api', 'compiled.ts'],
];

interface Import {
  readonly from: string;
  readonly to: string;
}

function sources(folder: string): string[] {
  const path = join(ROOT, folder);
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const found = text.matchAll(/(?:from|import\(?|new URL\()\s*'(\.{1,2}\/[^']+\.ts)'/g);
  return [...found].map(([, target = '']) => ({ from: file, to: relative(ROOT, join(ROOT, dirname(file), target)) }));
}

function rank(file: string): number {
  const [, part = ''] = file.split('/');
  return ENCLAVE_ORDER.findIndex((level) => level.includes(part));
}

/** Pure modules that configuration may check its values with. */
const CONFIG_MAY_USE = ['enclave/auth/cidr.ts'];

function wrongInEnclave({ from, to }: Import): boolean {
  if (!to.startsWith('enclave/')) return false;
  const [, fromPart = ''] = from.split('/');
  const [, toPart = ''] = to.split('/');
  if (fromPart === toPart || CONFIG_MAY_USE.includes(to)) return false;
  if (WIRING.includes(fromPart) && WIRING.includes(toPart)) return false;
  if (rank(from) === -1 || rank(to) === -1) return true; // a folder this list does not know
  return rank(to) <= rank(from);
}

const folders = readdirSync(ROOT).filter((name) => TOP_FOLDERS.includes(name));
const imports = folders.flatMap(sources).flatMap(importsOf);

describe('import arrows', () => {
  it('there are imports to look at', () => {
    expect(imports.length).toBeGreaterThan(50);
  });

  it('top-level folders import only what their trust boundary allows', () => {
    const wrong = imports.filter(({ from, to }) => {
      const [home = ''] = from.split('/');
      const allowed = TOP_ARROWS[home];
      return (
        !to.startsWith(`${home}/`) &&
        ![...(allowed ?? []), ...(LEAVES.includes(`${home}/`) ? [] : LEAVES)].some((prefix) => to.startsWith(prefix))
      );
    });
    expect(wrong).toEqual([]);
  });

  it('inside enclave/ arrows point down', () => {
    expect(imports.filter(({ from }) => from.startsWith('enclave/')).filter(wrongInEnclave)).toEqual([]);
  });

  it('nothing but tests imports tests', () => {
    expect(imports.filter(({ to }) => to.startsWith('test/'))).toEqual([]);
  });
});
