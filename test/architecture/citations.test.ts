// Every citation leads somewhere: sources, tests and documents name documents of this repository only, and the section
// that they name is there. Other law has its own numbers (EIP, RFC, NIST); a document that only its author has is none.
// A citation is a path that ends in .md, from the file's folder, the root or docs/, with `#anchor` where it means a
// section.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchorsOf } from './anchors.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What is not ours, or not text. */
const LEFT_OUT = /(?:^|\/)(?:node_modules|build|\.git|test\/vectors)(?:\/|$)|package-lock\.json$/;
const READ = /\.(?:ts|c|h|md|mk|sh|ya?ml|json|tf|service)$|(?:^|\/)(?:Makefile|run|run-enclave)$/;
/** What it writes lies in docs/reference. */
const GENERATOR = /^tools\/reference\//;
/** `specification/custody.md#shares, #opening`; not inside a URL. */
const CITATION = /(?<![\w/.:-])((?:\.{1,2}\/)*[\w-]+(?:[./][\w-]+)*\.md)((?:#[\w-]+)?(?:, #[\w-]+)*)/g;

interface Citation {
  readonly from: string;
  readonly path: string;
  readonly anchors: readonly string[];
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (LEFT_OUT.test(path)) return [];
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() && READ.test(path) ? [path] : [];
  });
}

/** Without URLs, whose paths are of others, and without commands that name a file of their reader. */
function citationsIn(file: string, text: string): Citation[] {
  return [...text.replaceAll(/https?:\/\/\S+/g, '').matchAll(CITATION)].map(([, path = '', anchors = '']) => ({
    from: file,
    path,
    anchors: anchors.split(/, |(?=#)/).flatMap((anchor) => (anchor.startsWith('#') ? [anchor.slice(1)] : [])),
  }));
}

function resolved({ from, path }: Pick<Citation, 'from' | 'path'>): string | undefined {
  const places = [join(dirname(from), path), path, join('docs', path)];
  if (GENERATOR.test(from)) places.push(join('docs/reference', path));
  return places.find((place) => existsSync(join(ROOT, place)));
}

/** What is wrong with it, in words that say what to do; undefined when it leads somewhere. */
function problemOf(citation: Citation): string | undefined {
  const document = resolved(citation);
  const { from, path } = citation;
  if (document === undefined) {
    return `${from} cites ${path}, which is not in the repository: cite docs/specification, with an anchor`;
  }
  const missing = citation.anchors.filter((anchor) => !anchorsOf(join(ROOT, document)).has(anchor));
  return missing.length === 0 ? undefined : `${from} cites ${document}, which has no section #${missing.join(', #')}`;
}

const files = filesBelow('.').map((file) => relative('.', file));
const citations = files.flatMap((file) => citationsIn(file, readFileSync(join(ROOT, file), 'utf8')));

describe('citations', () => {
  it('lead to documents and sections that are there', () => {
    expect(citations.filter(({ path }) => path.startsWith('specification/')).length).toBeGreaterThan(100);
    expect(citations.flatMap((citation) => problemOf(citation) ?? [])).toEqual([]);
  });

  it('of the specification name a section', () => {
    const whole = citations.filter(
      ({ from, path, anchors }) => !from.endsWith('.md') && path.startsWith('specification/') && anchors.length === 0,
    );
    expect(whole.map(({ from, path }) => `${from} cites ${path} as a whole: name a section`)).toEqual([]);
  });

  it.each([
    ['a document that is not here', 'elsewhere', '', 'not in the repository'],
    ['a section that is not there', 'docs/specification/custody', '#no-such-section', 'has no section'],
    ['the second of two sections', 'docs/specification/custody', '#shares, #nowhere', 'has no section #nowhere'],
  ])('%s is noticed', (_what, name, section, problem) => {
    // Put together here: this file is looked at as well.
    const found = citationsIn('service/main.ts', `// Cited as ${name}.md${section}.`);
    expect(found.map(problemOf)).toEqual([expect.stringContaining(problem)]);
  });

  it('every section of the specification has an anchor of its own', () => {
    const pages = readdirSync(join(ROOT, 'docs/specification')).filter((name) => name.endsWith('.md'));
    for (const page of pages) {
      const text = readFileSync(join(ROOT, 'docs/specification', page), 'utf8');
      const ids = [...text.matchAll(/<a id="([\w-]+)">/g)].map(([, id]) => id);
      const sections = [...text.matchAll(/(?:^<a id="[\w-]+"><\/a>\n)?^#{2,6} .+$/gm)].map(([section]) => section);
      expect([page, sections.filter((section) => !section.startsWith('<a id='))]).toEqual([page, []]);
      expect([page, new Set(ids).size]).toEqual([page, ids.length]);
    }
  });
});
