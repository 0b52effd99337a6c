// Comments and documents are at most 120 columns wide, so that two of them stand side by side on a screen. The
// formatter sees to code; it leaves comments as they are, also those after code, which make the whole line too wide.
// Tables, listings and what has no place to break are left alone.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Comment, commentsIn, commentsOfAll, filesBelow } from './comments.ts';

const ROOT = join(import.meta.dirname, '../..');
const MAX_COLUMNS = 120;

/** A line without two words cannot be broken; one with a URL should not be. */
function isTooWide(line: string): boolean {
  return [...line].length > MAX_COLUMNS && line.trim().split(/\s+/).length > 3 && !line.includes('://');
}

function wideLinesIn({ file, line, lines }: Comment): string[] {
  return lines.flatMap((text, index) => (isTooWide(text) ? [`${file}:${line + index}`] : []));
}

/** `isProse` is asked of each line in turn. */
function wideLinesOf(file: string, isProse: (line: string) => boolean): string[] {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n');
  return lines.flatMap((line, index) => (isProse(line) && isTooWide(line) ? [`${file}:${index + 1}`] : []));
}

/** What of a document is prose: neither tables nor what stands between fences. */
function proseReader(): (line: string) => boolean {
  let isListing = false;
  return (line) => {
    const isFence = /^\s*(?:(?:[-*+]|\d+\.)\s+)?```/.test(line);
    if (isFence) isListing = !isListing;
    return !isFence && !isListing && !line.trimStart().startsWith('|');
  };
}

it('comments are at most 120 columns wide', () => {
  const comments = commentsOfAll();
  expect(new Set(comments.map(({ file }) => file)).size).toBeGreaterThan(1000);
  expect(comments.flatMap(wideLinesIn)).toEqual([]);
});

it.each([
  ['of its own, in TypeScript', 'service/main.ts', `  // ${'word '.repeat(30)}`, ['service/main.ts:2']],
  ['after code', 'service/main.ts', `const a = 1; // ${'word '.repeat(30)}`, ['service/main.ts:2']],
  ['of a script', 'bin/pinned-node', `# ${'word '.repeat(30)}`, ['bin/pinned-node:2']],
  ['of a unit', 'release/systemd/a.service', `# ${'word '.repeat(30)}`, ['release/systemd/a.service:2']],
  ['after a target', 'Makefile', `target: ## ${'word '.repeat(30)}`, ['Makefile:2']],
  ['in a string, which is none', 'service/main.ts', `const a = ' // ${'word '.repeat(30)}';`, []],
])('sees a comment %s', (_what, file, line, wide) => {
  expect(commentsIn(file, `\n${line}`).flatMap(wideLinesIn)).toEqual(wide);
});

it('documents are at most 120 columns wide', () => {
  const files = filesBelow('.', (path) => path.endsWith('.md'));
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap((file) => wideLinesOf(file, proseReader()))).toEqual([]);
});
