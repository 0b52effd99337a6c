// docs/README.md is the one index: it names every page below docs/ once, in the list of its kind. And every link of
// every Markdown file leads to a file and a section that are there. Pages of docs/decisions are listed by their own
// README.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchorsOf, withoutFences } from './anchors.ts';

const ROOT = join(import.meta.dirname, '../..');
const LEFT_OUT = /(?:^|\/)(?:node_modules|build|\.git|test\/vectors)(?:\/|$)/;
/** By the folder of the page; every other page is of the last kind. */
const KINDS: Readonly<Record<string, string>> = { tutorial: 'Tutorial', guides: 'Guides', runbooks: 'Runbooks' };
const LAST_KIND = 'Reference';
const LINK = /\]\(([^()\s]+)\)/g;

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

function pagesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (LEFT_OUT.test(path)) return [];
    if (entry.isDirectory()) return pagesBelow(path);
    return path.endsWith('.md') ? [path] : [];
  });
}

/** Links that are not of others, without what is code. */
function linksIn(markdown: string): readonly string[] {
  const prose = withoutFences(markdown).replaceAll(/`[^`\n]*`(?!\])/g, '');
  return [...prose.matchAll(LINK)].map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
}

/** What is wrong with a link, in words that say what to do. */
function problemOf(page: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (target.startsWith('..') || !existsSync(join(ROOT, target))) {
    return `${page} links to ${link}, which is not there: correct the path, from the page's own folder`;
  }
  if (anchor === undefined || anchorsOf(join(ROOT, target)).has(anchor)) return undefined;
  return `${page} links to ${link}, and ${target} has no section #${anchor}: name one that it has`;
}

describe('links', () => {
  it('lead to files and sections that are there', () => {
    const links = pagesBelow('.').flatMap((page) => linksIn(textOf(page)).map((link) => ({ page, link })));
    expect(links.length).toBeGreaterThan(200);
    expect(links.flatMap(({ page, link }) => problemOf(page, link) ?? [])).toEqual([]);
  });

  it.each([
    ['a file that is not there', 'examples/nowhere.yaml', 'which is not there'],
    ['what lies outside', '../../outside.yaml', 'which is not there'],
    ['a missing section of another page', `${'glossary'}.md#nothing`, 'has no section #nothing'],
    ['a missing section of the page', '#nothing', 'has no section #nothing'],
  ])('one to %s is noticed', (_what, link, problem) => {
    expect(linksIn(`a [link](${link})`).map((found) => problemOf('docs/architecture.md', found))).toEqual([
      expect.stringContaining(problem),
    ]);
  });
});

/** The links of each list below “Every page”, as paths from the root. */
function listedByKind(): Map<string, string[]> {
  const [, lists = ''] = textOf('docs/README.md').split('\n## Every page\n');
  const sections = lists.split(/^### /m).slice(1);
  return new Map(
    sections.map((section) => {
      const [kind = ''] = section.split('\n', 1);
      const items = [...section.matchAll(/^- \[[^\]]+\]\(([^)]+)\): ./gm)];
      return [kind, items.map(([, path = '']) => normalize(join('docs', path)))];
    }),
  );
}

function kindOf(page: string): string {
  return KINDS[relative('docs', page).split('/')[0] ?? ''] ?? LAST_KIND;
}

describe('docs/README.md', () => {
  const listed = listedByKind();
  const pages = pagesBelow('docs').filter((page) => page !== 'docs/README.md');

  it('names every page once, in the list of its kind', () => {
    const own = pages.filter((page) => !/^docs\/decisions\/\d/.test(page));
    expect(own.length).toBeGreaterThan(40);
    const missing = own.filter((page) => !listed.get(kindOf(page))?.includes(page));
    expect(
      missing.map((page) => `add a line to “${kindOf(page)}”: - [name](${relative('docs', page)}): what it is for`),
    ).toEqual([]);
    const all = [...listed.values()].flat();
    expect(all.filter((page, index) => all.indexOf(page) !== index)).toEqual([]);
  });

  it('has lists of these kinds only, each page of docs/ in its own', () => {
    const kinds = [...Object.values(KINDS), LAST_KIND];
    expect([...listed.keys()].filter((kind) => !kinds.includes(kind))).toEqual([]);
    const strays = [...listed].flatMap(([kind, paths]) =>
      paths.filter((path) => path.startsWith('docs/') && kindOf(path) !== kind),
    );
    expect(strays).toEqual([]);
  });

  it('leads to every decision by the list of decisions', () => {
    const decisions = pages.filter((page) => /^docs\/decisions\/\d/.test(page));
    expect(linksIn(textOf('docs/decisions/README.md')).map((link) => join('docs/decisions', link))).toEqual(decisions);
  });

  it('has a path for each reader, of five steps or so', () => {
    const [paths = ''] = textOf('docs/README.md').split('\n## Every page\n');
    const readers = paths.split(/^### /m).slice(1);
    expect(readers.map((path) => path.split('\n', 1)[0])).toEqual([
      'Validator-client operator',
      'Operator',
      'Custodian',
      'Ceremony participant',
      'Auditor',
      'Developer',
    ]);
    for (const path of readers) expect(linksIn(path).length).toBeGreaterThan(1);
  });
});
