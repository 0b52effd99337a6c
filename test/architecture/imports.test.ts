// The arrows of the tree (docs/architecture.md): what a folder may import. A wrong arrow is a design fault, and so is a
// circle, types included: whoever reads one file of a circle has to read all of them.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** Everything may use them; they use nothing but each other, as ARROWS says. */
const LEAVES = ['attestation', 'command-line', 'flow', 'formats', 'observe', 'receipts'].map(
  (leaf) => `common/${leaf}/`,
);

/** May import everything: proof, measurement, demonstration, the generator of the references. */
const EVERYTHING = [''];

/** What is right, computed without the signer's code: for the conformance kit and for tests. */
const EXPECTED = 'test/expected/';

/** Folders whose own folders are homes: each states its arrows by itself. */
const HOUSES_OF_HOMES = ['common', 'lab', 'tools'];

/** What each home may import besides itself. `signer/api` is the wire contract. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  bin: [
    'signer/api/version.ts',
    ...['main.ts', 'config/help.ts', 'commands/slashing.ts'].map((file) => `service/${file}`),
    ...['main.ts', 'try.ts', 'init.ts', 'migrate.ts'].map((file) => `service/first/${file}`),
    ...['main.ts', 'tree.ts', 'profile-file.ts'].map((file) => `operator/${file}`),
    ...['main.ts', 'description.ts'].map((file) => `service/web3signer/${file}`),
    ...['setup', 'ceremony', 'eif', 'parent-proxy'].map((folder) => `${folder}/main.ts`),
    // For `operator recover`: operator/ itself reaches no table.
    'service/commands/latch-table.ts',
    'rehearsal/rehearse.ts',
  ],
  ceremony: [],
  // Both sides of a document: the enclave that keeps one, the operator who is shown one.
  'common/attestation': ['common/command-line/', 'common/formats/'],
  'common/command-line': ['common/formats/'],
  'common/flow': [],
  'common/formats': [],
  'common/observe': ['common/flow/'],
  // Both sides of a log: the signer that keeps it, the auditor who verifies it.
  'common/receipts': ['common/attestation/', 'common/formats/'],
  demo: EVERYTHING,
  deploy: [],
  docs: [],
  // It bundles enclave/main.ts, as files.
  // `--ca` names hosts as `tee.nitro.egress` does.
  eif: ['ceremony/', 'signer/api/version.ts', 'signer/api/egress.ts'],
  enclave: ['signer/', 'ceremony/'],
  'lab/bench': EVERYTHING,
  // What is right is computed without the signer's code; only the constants of networks are shared.
  'lab/conformance': ['signer/api/network-table.ts', 'signer/sign/networks.ts', EXPECTED],
  // It reads pages.
  'lab/site': ['tools/reference/markdown.ts'],
  'lab/test': EVERYTHING,
  // The combiner of a distributed key computes with public points, and `keys split` with a key of the operator's own.
  operator: ['signer/api/', 'signer/native/load.ts', 'signer/keys/keystores/', 'ceremony/'],
  // Both ends of a vsock stream are made by the same code; nothing of what it imports is secret or signs.
  'parent-proxy': ['signer/api/', 'signer/native/'],
  // Its stand-in for the NSM is made of the enclave's own messages and certificates.
  rehearsal: ['ceremony/', 'signer/', 'enclave/', 'service/'],
  service: ['signer/', 'ceremony/'],
  // It reads configurations as the signer does.
  setup: ['ceremony/', 'signer/', 'service/config/'],
  signer: ['ceremony/'],
  test: EVERYTHING,
  // Scripts of the shell: they run before there is a Node.js.
  'tools/checkout': [],
  'tools/reference': EVERYTHING,
  // It bundles bin/strongroom.ts, as files.
  'tools/release': ['ceremony/', 'eif/', 'signer/api/version.ts'],
};
/** What is made here and belongs to nobody's sources (.gitignore). */
const MADE_HERE = ['build', 'node_modules'];

/** It shows what the tests in a guest do: it boots them and tells what happens. */
const DEMONSTRATED_TESTS = new Set(['demo/enclave.ts']);

/** They wire the rest together, and each other. */
const WIRING = ['main.ts', 'boot', 'commands'];

/** Folders of signer/, from the top: each may import the ones below it and `api`. */
const SIGNER_ORDER = [
  WIRING,
  ['http', 'config'],
  ['sign', 'chamber'],
  ['auth', 'bls'],
  ['operations'],
  ['slashing', 'keys', 'receipts'],
  ['aws', 'tls'],
  ['tee'],
  ['native'],
  ['metrics'],
  ['api', 'parallel.ts', 'tenure.ts'],
];

/** Its 503 is what was asked for, and no refusal. */
const OWN_STATUS = new Set(['signer/http/routes/health.ts']);

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
  return SIGNER_ORDER.findIndex((level) => level.includes(part));
}

/** Pure modules that configuration may check its values with. */
const CONFIG_MAY_USE = ['signer/auth/cidr.ts'];

function wrongInSigner({ from, to }: Import): boolean {
  if (!to.startsWith('signer/')) return false;
  const [, fromPart = ''] = from.split('/');
  const [, toPart = ''] = to.split('/');
  if (fromPart === toPart || CONFIG_MAY_USE.includes(to)) return false;
  if (rank(from) === -1 || rank(to) === -1) return true; // a folder this list does not know
  return rank(to) <= rank(from);
}

const folders = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !MADE_HERE.includes(entry.name))
  .map(({ name }) => name);
const HAS_LAB = folders.includes('lab');
const imports = folders.flatMap(sources).flatMap(importsOf);

/** The home of a file: its top-level folder, or the folder in a house of homes. */
function homeOf(file: string): string {
  const [top = '', next = ''] = file.split('/');
  return HOUSES_OF_HOMES.includes(top) ? `${top}/${next}` : top;
}

function homes(): string[] {
  const inside = (house: string): string[] =>
    readdirSync(join(ROOT, house), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${house}/${name}`);
  return folders.flatMap((folder) => (HOUSES_OF_HOMES.includes(folder) ? inside(folder) : [folder])).sort();
}

describe('import arrows', () => {
  it('there are imports to look at', () => {
    expect(imports.length).toBeGreaterThan(50);
  });

  it('every home states what it may import', () => {
    const stated = Object.keys(ARROWS).filter((home) => HAS_LAB || !home.startsWith('lab/'));
    expect(homes()).toEqual(stated.sort());
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

  it('each home imports only what its trust boundary allows', () => {
    const wrong = imports.filter(({ from, to }) => {
      const home = homeOf(from);
      const leaves = LEAVES.includes(`${home}/`) ? [] : LEAVES;
      return (
        !to.startsWith(`${home}/`) && ![...(ARROWS[home] ?? []), ...leaves].some((prefix) => to.startsWith(prefix))
      );
    });
    expect(wrong).toEqual([]);
  });

  it('inside signer/ arrows point down', () => {
    expect(imports.filter(({ from }) => from.startsWith('signer/')).filter(wrongInSigner)).toEqual([]);
  });

  it('a route refuses by throwing: none writes the answer of a refusal', () => {
    const routes = sources('signer/http/routes').filter((file) => !OWN_STATUS.has(file));
    const writers = imports.filter(({ from, to }) => routes.includes(from) && to === 'signer/http/refusals.ts');
    const statuses = routes.filter((file) => /\.(?:code|status)\(/.test(readFileSync(join(ROOT, file), 'utf8')));
    expect(routes.length).toBeGreaterThan(10);
    expect([...writers, ...statuses]).toEqual([]);
  });

  it('what is right is computed without the signer', () => {
    const computed = imports.filter(({ from }) => from.startsWith(EXPECTED) && !from.endsWith('.test.ts'));
    expect(computed.length).toBeGreaterThan(1);
    expect(computed.filter(({ to }) => !to.startsWith(EXPECTED))).toEqual([]);
  });

  it('nothing uses the lab, and the product no tools: a checkout without lab/ is whole', () => {
    const outside = imports.filter(({ from }) => !from.startsWith('lab/'));
    const wrong = outside.filter(
      ({ from, to }) => to.startsWith('lab/') || (to.startsWith('tools/') && !/^(?:test|tools)\//.test(from)),
    );
    expect(wrong).toEqual([]);
  });

  it('nothing but tests and measurements imports tests', () => {
    const others = imports.filter(({ from }) => !/^(?:lab|test)\//.test(from));
    const wrong = others.filter(({ from, to }) => to.startsWith('test/') && !DEMONSTRATED_TESTS.has(from));
    expect(wrong).toEqual([]);
  });

  it('stand-ins are loaded by demonstrations and tests, and by the one command for rehearsals', () => {
    const product = imports.filter(({ from }) => !/^(?:lab|demo|test|rehearsal)\//.test(from));
    expect(product.filter(({ to }) => to.startsWith('rehearsal/'))).toEqual([
      { from: 'bin/programs.ts', to: 'rehearsal/rehearse.ts' },
    ]);
  });
});
