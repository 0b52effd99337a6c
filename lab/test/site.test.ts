// The documentation site (lab/site), without the program that makes it: every page is in its navigation, in the order
// of docs/README.md, and a site with a wrong link is refused.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { problemsOf } from '../site/links.ts';
import { type Group, linkOf, navigationOf, type Page } from '../site/navigation.ts';

const ROOT = join(import.meta.dirname, '../..');

function pagesIn(items: readonly (Page | Group)[]): readonly Page[] {
  return items.flatMap((item) => [
    ...('link' in item ? [{ text: item.text, link: item.link }] : []),
    ...('items' in item ? pagesIn(item.items) : []),
  ]);
}

describe('the navigation', () => {
  const groups = navigationOf(ROOT);
  const shown = pagesIn(groups);

  it('has every page of docs/ once', () => {
    const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && name !== 'README.md')
      .map((name) => linkOf(`docs/${name}`));
    expect(pages.length).toBeGreaterThan(60);
    const links = shown.map(({ link }) => link);
    expect(links.filter((link) => link.startsWith('/docs/')).sort()).toEqual(pages.sort());
    expect(links.filter((link, at) => links.indexOf(link) !== at)).toEqual([]);
  });

  it('is in the order of docs/README.md, under its headings, with the titles of the pages', () => {
    const [, lists = ''] = readFileSync(join(ROOT, 'docs/README.md'), 'utf8').split('\n## Every page\n');
    const headings = [...lists.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading);
    expect(groups.map(({ text }) => text)).toEqual(headings);
    const places = shown
      .filter(({ link }) => link.startsWith('/docs/') && !/decisions\/\d/.test(link))
      .map(({ link }) => lists.indexOf(`](${link.slice('/docs/'.length).replace(/\/$/, '/README')}.md)`));
    expect(places.filter((place) => place === -1)).toEqual([]);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(shown.filter(({ text }) => text === '' || text.endsWith('.md'))).toEqual([]);
  });
});

describe('a built site', () => {
  const site = mkdtempSync(join(tmpdir(), 'strongroom-site-'));
  afterAll(() => rmSync(site, { recursive: true, force: true }));
  const lay = (files: Readonly<Record<string, string>>): readonly string[] => {
    rmSync(site, { recursive: true, force: true });
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(site, name)), { recursive: true });
      writeFileSync(join(site, name), text);
    }
    return problemsOf(site);
  };

  it('is good when its links lead to files and places that are there', () => {
    const index = '<a class="x" href="docs/"></a><a href="#here"></a><h2 id="here"></h2><img src="/docs/a%20b.svg">';
    const page =
      '<a href="../index.html#here"></a><a href="https://example.org/"></a><script src="/x.js?v=1"></script>';
    expect(lay({ 'index.html': index, 'docs/index.html': page, 'docs/a b.svg': '', 'x.js': '' })).toEqual([]);
  });

  it.each([
    ['a page that is not there', '<a href="other.html"></a>', 'other.html: is not there'],
    ['a folder without an index', '<a href="docs/"></a>', 'docs/: is not there'],
    ['a place that is not there', '<a href="#gone"></a>', '#gone: index.html has no such place'],
    ['a picture that is not there', '<img alt="" src="/a.svg">', '/a.svg: is not there'],
    ['a script of another host', '<script src="https://example.org/x.js"></script>', 'is loaded from another host'],
    ['a style of another host', '<link rel="stylesheet" href="//example.org/x.css">', 'is loaded from another host'],
  ])('is refused with %s', (_what, html, problem) => {
    expect(lay({ 'index.html': html })).toEqual([expect.stringContaining(problem)]);
  });

  it('is refused without a page', () => {
    expect(lay({ 'x.js': '' })).toEqual([expect.stringContaining('no page')]);
  });
});

it('what makes the site is pinned by digest, from no host, and is no package of the product', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'lab/package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly resolved?: string }>>;
  };
  const { '': _self, ...others } = packages;
  expect(Object.keys(others).length).toBeGreaterThan(100);
  const strange = Object.entries(others).filter(([, { integrity = '', resolved }]) => {
    return resolved !== undefined || !integrity.startsWith('sha512-');
  });
  expect(strange).toEqual([]);
  expect(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).not.toMatch(/"node_modules\/(?:vitepress|mermaid)"/);
});
