// The budget of CONTRIBUTING.md: how much of each thing there may be at most. It may only get less: who adds takes
// away.
// Lines are of code, neither blank nor comment alone, so that comments that teach cost nothing.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bundleSigner, ownSources } from '../../eif/bundle/bundle.ts';
import { OPTION_PATHS } from '../../signer/config/options.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What ships: three programs, their commands, and what they share. Maintainers' tools, lab and tests are not in it. */
const PRODUCT = 'signer service enclave parent-proxy operator ceremony eif common setup rehearsal bin'.split(' ');
/** Its C is in the image, too: the addon, and what starts it. */
const IMAGE_IN_C = ['signer/native', 'eif/init'];
const NOT_CODE = /^\s*(?:$|\/\/|\/?\*)/;
const EXPORTED = /^export (?:async function\*?|function\*?|const|let|abstract class|class|interface|type|enum) /gm;

interface Described {
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly commands?: Readonly<Record<string, Described>>;
}

function filesOf(folders: readonly string[], ending: RegExp): readonly string[] {
  return folders
    .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
}

function codeLinesOf(texts: readonly string[]): number {
  return texts.flatMap((text) => text.replace(/\n$/, '').split('\n')).filter((line) => !NOT_CODE.test(line)).length;
}

function flagsOf({ flags = {}, commands = {} }: Described): number {
  return Object.keys(flags).length + Object.values(commands).reduce((sum, one) => sum + flagsOf(one), 0);
}

async function imageSources(): Promise<readonly string[]> {
  const own = ownSources(await bundleSigner(ROOT)).map(({ path }) => readFileSync(join(ROOT, path), 'utf8'));
  return [...own, ...filesOf(IMAGE_IN_C, /\.[ch]$/)];
}

const COUNTS: Readonly<Record<string, () => number | Promise<number>>> = {
  'lines of code of the product': () => codeLinesOf(filesOf(PRODUCT, /\.(?:ts|c|h)$/)),
  'of these, in the image': async () => codeLinesOf(await imageSources()),
  'exported names': () => filesOf(PRODUCT, /\.ts$/).reduce((sum, text) => sum + (text.match(EXPORTED)?.length ?? 0), 0),
  options: () => OPTION_PATHS.length,
  'flags of all commands': () => flagsOf(JSON.parse(readFileSync(join(ROOT, 'bin/descriptions.json'), 'utf8'))),
  'words of docs/': () =>
    filesOf(['docs'], /\.md$/).reduce((sum, text) => sum + text.split(/\s+/).filter(Boolean).length, 0),
};

const rows = [...readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').matchAll(/^\| ([^|]+) \| ([0-9,]+) \|/gm)];
const budget = new Map(rows.map(([, name = '', most = '']) => [name, Number(most.replaceAll(',', ''))]));

it('the budget names all that is counted', () => {
  expect([...budget.keys()].filter((name) => COUNTS[name] !== undefined)).toEqual(Object.keys(COUNTS));
});

it.each(Object.entries(COUNTS))('%s: at most what the budget allows', async (name, count) => {
  const counted = await count();
  expect(counted).toBeGreaterThan(0);
  expect(counted).toBeLessThanOrEqual(budget.get(name) ?? 0);
});
