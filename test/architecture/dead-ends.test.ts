// What a catalogue promises and nothing keeps: a metric that nothing records, an option that nothing reads, a route
// without its page of the specification. Each is found here, so `make test-fast` names the place that a change forgot.

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SCOPE_CATALOGUE } from '../../signer/api/scope-catalogue.ts';
import { OPTIONS } from '../../signer/config/options.ts';
import { METRICS } from '../../signer/metrics/catalogue.ts';

const ROOT = join(import.meta.dirname, '../..');
const PRODUCT = ['signer', 'service', 'enclave'];
/** Where metrics and options are declared and described: a name there is no use of it. */
const DECLARED_IN = /^signer\/(?:metrics\/(?:catalogue|handles|labels|entry|reference)\.ts|config\/options)/;

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const withoutComments = (code: string): string => code.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '');

const sources = PRODUCT.flatMap((folder) => filesBelow(folder, '.ts'))
  .filter((path) => !DECLARED_IN.test(path))
  .map((path) => withoutComments(textOf(path)));
const specification = filesBelow('docs/specification', '.md').map(textOf).join('\n');

const found = new Map<string, ReadonlySet<number>>();

/** Where `metrics.keys` is, or `{ keys }` and `{ keys: count }` of a record; by the numbers of the sources. */
function readersOf(member: string): ReadonlySet<number> {
  const known = found.get(member);
  if (known !== undefined) return known;
  const read = new RegExp(`[.]${member}\\b|[{,(]\\s*${member}\\s*[,:}=]|['"]${member}['"]`);
  const readers = new Set(sources.flatMap((code, at) => (read.test(code) ? [at] : [])));
  found.set(member, readers);
  return readers;
}

const isRead = (member: string): boolean => readersOf(member).size > 0;

/** In one source with its section: the last member alone would let `x.table` stand for `y.table`. */
function isReadOption(path: string): boolean {
  const members = path.split('.');
  const [section = '', member = ''] = members.slice(-2);
  if (members.length === 1) return isRead(path);
  const readers = readersOf(member);
  return [...readersOf(section)].some((at) => readers.has(at));
}

describe('nothing is promised in vain', () => {
  it('each metric of the catalogue is recorded', () => {
    expect(Object.keys(METRICS).filter((key) => !isRead(key))).toEqual([]);
  });

  it('each option of the table is read', () => {
    expect(Object.keys(OPTIONS).filter((path) => !isReadOption(path))).toEqual([]);
  });

  it('each route has its place in the specification', () => {
    const routes = Object.values(SCOPE_CATALOGUE).flatMap((scope) => scope.routes);
    const paths = [...new Set(routes.map((route) => route.split(' ')[1] ?? ''))];
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => !specification.includes(path))).toEqual([]);
  });

  it('a metric that nobody counts would be found', () => {
    expect(isRead('signingRequestsThatNobodyCounts')).toBe(false);
  });

  it.each(['an_option_that_nothing_reads', 'receipts.passwords_path'])('%s would be found', (path) => {
    expect(isReadOption(path)).toBe(false);
  });
});
