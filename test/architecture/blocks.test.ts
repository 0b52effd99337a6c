// Every command block of the pages that people follow is run by a test, or says in its fence what it needs that no test
// has. CONTRIBUTING.md has the marks; test/runbooks/page.ts reads them.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { blocksOf } from '../runbooks/page.ts';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

function pagesOf(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.md'));
  return names.map((name) => join(folder, name));
}

const pages = ['README.md', ...['docs/tutorial', 'docs/guides', 'docs/runbooks'].flatMap(pagesOf)];
const refusals: string[] = [];
const blocks = pages.flatMap((page) => {
  try {
    return blocksOf(page, textOf(page));
  } catch (error) {
    refusals.push(String(error));
    return [];
  }
});
/** What reads a page with its blocks is a test of these folders. */
const tests = ['test/ceremony', 'test/release', 'test/runbooks'].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .filter((name) => /[.-]tests?\.ts$/.test(name))
    .map((name) => textOf(join(folder, name))),
);

it('every fence has a mark that is known', () => {
  expect(refusals).toEqual([]);
});

it('a block that no test runs says what it needs', () => {
  expect(blocks.length).toBeGreaterThan(80);
  const silent = blocks.filter(({ kind, needs, callsAws }) => kind === 'elsewhere' && needs.length === 0 && !callsAws);
  expect(silent.map(({ page, line }) => `${page}:${line}: write what it needs: sh elsewhere docker, …`)).toEqual([]);
});

it('a page with commands is run by a test', () => {
  const toRun = new Set(blocks.filter(({ kind }) => kind !== 'elsewhere').map(({ page }) => page));
  expect(toRun.size).toBeGreaterThan(8);
  const reader = (page: string): RegExp => new RegExp(`(?:(?:rehearse|blocksOf|commandsIn)\\(\\s*|PAGE = )'${page}'`);
  const unread = [...toRun].filter((page) => !tests.some((text) => reader(page).test(text)));
  expect(
    unread.map((page) => `${page}: no test rehearses it (CONTRIBUTING.md, “Pages whose commands are tests”)`),
  ).toEqual([]);
});
