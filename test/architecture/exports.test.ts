// `export` says that another file relies on a name. What only its own file uses is not exported, nor what only the lab
// uses: a checkout may lack it. A name means one thing in the whole product.

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const PRODUCT = /^(?:signer|service|enclave|parent-proxy|operator|ceremony|eif|common|setup|rehearsal|bin)\//;
const NOT_SOURCES = /^(?:build|node_modules|\.)/;
/** VitePress imports it through a file that is written when the site is made. */
const IMPORTED_FROM_OUTSIDE = new Set(['lab/site/config.ts']);
const EXPORTED =
  /^export (?:async function\*?|function\*?|const|let|abstract class|class|interface|type|enum) ([A-Za-z_$][\w$]*)/gm;

const sources: ReadonlyMap<string, string> = new Map(
  readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NOT_SOURCES.test(entry.name))
    .flatMap(({ name }) => readdirSync(join(ROOT, name), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules'))
    .map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]),
);

it('every exported name is used by another file', () => {
  const ofLab = (path: string): boolean => path.startsWith('lab/');
  const everywhere = filesOfWords([...sources.values()]);
  const outsideLab = filesOfWords([...sources].flatMap(([path, text]) => (ofLab(path) ? [] : [text])));
  const unused = [...sources]
    .filter(([path]) => !/^(?:lab\/)?test\//.test(path) && !IMPORTED_FROM_OUTSIDE.has(path))
    .flatMap(([path, text]) => [...text.matchAll(EXPORTED)].map(([, name = '']) => ({ path, name })))
    .filter(({ path, name }) => (ofLab(path) ? everywhere : outsideLab).get(name) === 1);
  expect(sources.size).toBeGreaterThan(500);
  expect(unused).toEqual([]);
});

/** The door of a program. */
const OF_EVERY_PROGRAM = new Set(['main']);
/** A text that becomes a module of an image, in the place of enclave/compiled.ts. */
const WRITES_A_MODULE = 'eif/bundle/compiled-module.ts';
/** The leaves of signer/api/primitives.ts with their SSZ types, under their names. */
const NAMED_AS_ANOTHER = 'signer/operations/described.ts';

it('an exported name of the product is one thing: one file exports it', () => {
  const filesOf = new Map<string, Set<string>>();
  for (const [path, text] of sources) {
    if (!PRODUCT.test(path) || path === WRITES_A_MODULE || path === NAMED_AS_ANOTHER) continue;
    for (const [, name = ''] of text.matchAll(EXPORTED)) filesOf.set(name, (filesOf.get(name) ?? new Set()).add(path));
  }
  const shared = [...filesOf].filter(([name, files]) => files.size > 1 && !OF_EVERY_PROGRAM.has(name));
  expect(shared.map(([name, files]) => [name, ...files])).toEqual([]);
});

/** In how many texts each word is. */
function filesOfWords(texts: readonly string[]): ReadonlyMap<string, number> {
  const files = new Map<string, number>();
  for (const text of texts)
    for (const word of new Set(text.match(/[A-Za-z_$][\w$]*/g))) files.set(word, (files.get(word) ?? 0) + 1);
  return files;
}
