// The navigation of the documentation site: the lists of docs/README.md below “Every page”, in their order, with the
// titles of the pages. A paragraph that begins with bold words begins a group of that name.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Page {
  readonly text: string;
  /** From the root of the site: a page without `.md`, a README as its folder. */
  readonly link: string;
}

export interface Group {
  readonly text: string;
  readonly collapsed?: boolean;
  readonly items: readonly (Page | Group)[];
}

const INDEX = 'docs/README.md';
const DECISIONS = 'docs/decisions/README.md';
/** A longer list opens at a click, or on one of its pages. */
const MAX_OPEN = 5;
const ITEM = /^- \[[^\]]+\]\(([^)]+\.md)\)/gm;
const DECISION = /\[\d{4}\]\((\d{4}-[^)]+\.md)\)/g;

/** @throws Error about a list without a page */
export function navigationOf(root: string): readonly Group[] {
  const [, lists = ''] = readFileSync(join(root, INDEX), 'utf8').split('\n## Every page\n');
  const kinds = lists.split(/^### /m).slice(1);
  return kinds.map((kind) => {
    const [text = '', ...rest] = kind.split('\n');
    const items = itemsOf(root, rest.join('\n'));
    return { text, collapsed: items.length > MAX_OPEN, items };
  });
}

function itemsOf(root: string, list: string): readonly (Page | Group)[] {
  const [before = '', ...parts] = list.split(/^(?=\*\*[^*]+\*\*)/m);
  const groups = parts.map((part): Group => {
    const [, text = ''] = /^\*\*([^*]+)\*\*/.exec(part) ?? [];
    return { text, collapsed: true, items: pagesOf(root, part) };
  });
  const items = [...pagesOf(root, before), ...groups];
  if (items.length === 0) throw new Error(`${INDEX}: a list without a page`);
  return items;
}

function pagesOf(root: string, list: string): readonly (Page | Group)[] {
  return targetsOf(INDEX, list, ITEM).map((path) => {
    const page = pageOf(root, path);
    if (path !== DECISIONS) return page;
    const decisions = targetsOf(path, readFileSync(join(root, path), 'utf8'), DECISION);
    return { ...page, collapsed: true, items: decisions.map((decision) => pageOf(root, decision)) };
  });
}

/** The paths of the links in a text of that page. */
function targetsOf(page: string, text: string, link: RegExp): readonly string[] {
  return [...text.matchAll(link)].map(([, target = '']) => join(dirname(page), target));
}

function pageOf(root: string, path: string): Page {
  if (!existsSync(join(root, path))) throw new Error(`${INDEX} names ${path}, which is not there`);
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(root, path), 'utf8')) ?? [];
  return { text: title.replaceAll('`', ''), link: linkOf(path) };
}

export function linkOf(path: string): string {
  return `/${path.replace(/(?:README)?\.md$/, '')}`;
}
