// The arrows of the tree (docs/architecture.md): what a folder may import. A wrong arrow is a design fault, and so is a
// circle, types included: whoever reads one file of a circle has to read all of them.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** Everything may use them; they use nothing but each other, as TOP_ARROWS says. */
const LEAVES = ['command-line/', 'formats/', 'observe/'];

/** May import everything: proof, demonstration, explanation. */
const EVERYTHING = [''];

/** What each top-level folder may import besides itself. `enclave/api` is the wire contract. */
const TOP_ARROWS: Readonly<Record<string, readonly string[]>> = {
  bin: [
    'enclave/api/version.ts',
    ...['main.ts', 'config/help.ts', 'commands/slashing-descriptions.ts'].map((file) => `enclave/${file}`),
    ...['main.ts', 'description.ts', 'profile-file.ts'].map((file) => `operator/${file}`),
    ...['parent-proxy', 'setup', 'web3signer'].flatMap((folder) => [`${folder}/main.ts`, `${folder}/description.ts`]),
    // For `operator recover`: operator/ itself reaches no table.
    'enclave/commands/latch-table.ts',
    ...['ceremony', 'eif'].flatMap((folder) => [`${folder}/main.ts`, `${folder}/description.ts`]),
    'rehearsal/rehearse.ts',
  ],
  ceremony: [],
  'command-line': ['formats/'],
  demo: EVERYTHING,
  // Terraform; it has no sources.
  deploy: [],
  docs: EVERYTHING,
  eif: ['ceremony/', 'enclave/api/version.ts'],
  enclave: ['ceremony/'],
  formats: [],
  // The text log and the commands decide on colour alike.
  observe: ['command-line/color.ts'],
  operator: ['enclave/api/', 'ceremony/'],
  // Both ends of a vsock stream are made by the same code; nothing of what it imports is secret or signs.
  'parent-proxy': ['enclave/api/', 'enclave/native/'],
  rehearsal: ['ceremony/', 'enclave/', 'operator/attestation/'],
  // It bundles bin/strongroom.ts, as files.
  release: ['ceremony/', 'eif/', 'enclave/api/version.ts'],
  // It reads configurations as the signer does, and records of images as operators do.
  setup: ['ceremony/', 'enclave/', 'operator/attestation/policy.ts'],
  test: EVERYTHING,
  // A front: it makes a configuration, and the program that takes it does the rest.
  web3signer: ['enclave/main.ts', 'enclave/config/', 'enclave/api/version.ts'],
};
/** What is made here and belongs to nobody's sources (.gitignore). */
const MADE_HERE = ['build', 'node_modules'];

/** It shows what the tests in a guest do: it boots them and tells what happens. */
const DEMONSTRATED_TESTS = new Set(['demo/enclave.ts']);

/** They wire the rest together, and each other. */
const WIRING = ['main.ts', 'boot', 'commands'];

/** Folders of enclave/, from the top: each may import the ones below it and `api`. */
const ENCLAVE_ORDER = [
  WIRING,
  ['http', 'config'],
  ['signing', 'chamber'],
  ['auth'],
  ['slashing', 'keys'],
  ['aws', 'tls', 'harden'],
  ['tee'],
  ['native'],
  ['metrics'],
  ['api', 'compiled.ts', 'parallel.ts'],
];

/** Its 503 is what was asked for, and no refusal. */
const OWN_STATUS = new Set(['enclave/http/routes/health.ts']);

interface Import {
  readonly from: string;
  readonly to: string;
}

function sources(folder: string): string[] {
  const path = join(ROOT, folder);
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|c|h)$/.test(name))
    .map((name) => join(folder, name));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const found = file.endsWith('.ts')
    ? text.matchAll(/(?:from|import\(?|new URL\()\s*'(\.{1,2}\/[^']+\.ts)'/g)
    : text.matchAll(/^#include "([^"]+)"/gm);
  return [...found].map(([, target = '']) => ({ from: file, to: relative(ROOT, join(ROOT, dirname(file), target)) }));
}

/** A source of C and its header are one. */
function unitOf(file: string): string {
  return file.replace(/\.[ch]$/, '');
}

/** Functions that a header of C declares and the source of its name does not define: an arrow that no include shows. */
function strayDeclarations(header: string): string[] {
  const declared = readFileSync(join(ROOT, header), 'utf8').matchAll(/^(?!typedef)[a-z][\w *]*?(\w+)\([^{}]*\);$/gm);
  const source = readFileSync(join(ROOT, `${unitOf(header)}.c`), 'utf8');
  const isDefined = (name: string): boolean => new RegExp(`^[a-z][\\w *]*\\b${name}\\([^;{}]*\\{$`, 'm').test(source);
  return [...declared].flatMap(([, name = '']) => (isDefined(name) ? [] : [`${header}: ${name}`]));
}

/** Groups of files that import each other: strongly connected components (Tarjan, 1972). */
function circlesIn(arrows: readonly Import[]): string[][] {
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of arrows) {
    const known = targets.get(unitOf(from)) ?? new Set();
    targets.set(unitOf(from), known.add(unitOf(to)));
  }
  const circles: string[][] = [];
  const seenAt = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const visit = (file: string): void => {
    seenAt.set(file, seenAt.size);
    lowest.set(file, seenAt.get(file) ?? 0);
    open.push(file);
    for (const target of targets.get(file) ?? []) {
      if (!seenAt.has(target)) visit(target);
      if (open.includes(target)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(target) ?? 0));
    }
    if (lowest.get(file) !== seenAt.get(file)) return;
    const circle = open.splice(open.indexOf(file));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const file of targets.keys()) if (!seenAt.has(file)) visit(file);
  return circles;
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

const folders = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !MADE_HERE.includes(entry.name))
  .map(({ name }) => name);
const imports = folders.flatMap(sources).flatMap(importsOf);

describe('import arrows', () => {
  it('there are imports to look at', () => {
    expect(imports.length).toBeGreaterThan(50);
  });

  it('every top-level folder states what it may import', () => {
    expect(folders).toEqual(Object.keys(TOP_ARROWS).sort());
  });

  it('no file imports itself by way of others, types included', () => {
    expect(circlesIn(imports)).toEqual([]);
  });

  it('a header of C declares only what the source of its name defines', () => {
    const headers = folders.flatMap(sources).filter((name) => name.endsWith('.h'));
    expect(headers.length).toBeGreaterThan(10);
    expect(headers.flatMap(strayDeclarations)).toEqual([]);
  });

  it('sees a circle, and tells two that share no file apart', () => {
    const arrows = ['a b', 'b c', 'c a', 'c d', 'd e', 'e d', 'e f'].map((pair) => {
      const [from = '', to = ''] = pair.split(' ');
      return { from, to };
    });
    expect(circlesIn(arrows)).toEqual([
      ['d', 'e'],
      ['a', 'b', 'c'],
    ]);
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

  it('a route refuses by throwing: none writes the answer of a refusal', () => {
    const routes = sources('enclave/http/routes').filter((file) => !OWN_STATUS.has(file));
    const writers = imports.filter(({ from, to }) => routes.includes(from) && to === 'enclave/http/refusals.ts');
    const statuses = routes.filter((file) => /\.(?:code|status)\(/.test(readFileSync(join(ROOT, file), 'utf8')));
    expect(routes.length).toBeGreaterThan(10);
    expect([...writers, ...statuses]).toEqual([]);
  });

  it('nothing but tests imports tests', () => {
    const others = imports.filter(({ from }) => !from.startsWith('test/'));
    const wrong = others.filter(({ from, to }) => to.startsWith('test/') && !DEMONSTRATED_TESTS.has(from));
    expect(wrong).toEqual([]);
  });

  it('stand-ins are loaded by demonstrations and tests, and by the one command for rehearsals', () => {
    const product = imports.filter(({ from }) => !/^(?:demo|rehearsal|test)\//.test(from));
    expect(product.filter(({ to }) => to.startsWith('rehearsal/'))).toEqual([
      { from: 'bin/programs.ts', to: 'rehearsal/rehearse.ts' },
    ]);
  });
});
