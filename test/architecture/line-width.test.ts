// Comments and documents are at most 120 columns wide, so that two of them stand side by side on a screen. The
// formatter sees to code; it leaves comments as they are. Tables, listings and what has no place to break are left
// alone.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const MAX_COLUMNS = 120;
/** What is not ours, or is generated. */
const LEFT_OUT = /(?:^|\/)(?:node_modules|build|\.git|test\/vectors|docs\/reference)(?:\/|$)/;

function filesBelow(folder: string, ending: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (LEFT_OUT.test(path)) return [];
    if (entry.isDirectory()) return filesBelow(path, ending);
    return entry.isFile() && ending.test(path) ? [path] : [];
  });
}

/** A line without two words cannot be broken; one with a URL should not be. */
function isTooWide(line: string): boolean {
  return [...line].length > MAX_COLUMNS && line.trim().split(/\s+/).length > 3 && !line.includes('://');
}

/** `isProse` is asked of each line in turn. */
function wideLines(file: string, isProse: (line: string) => boolean): string[] {
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
  const files = filesBelow('.', /\.(?:ts|c|h)$/);
  expect(files.length).toBeGreaterThan(500);
  expect(files.flatMap((file) => wideLines(file, (line) => /^\s*(?:\/\/|\/?\*)/.test(line)))).toEqual([]);
});

it('documents are at most 120 columns wide', () => {
  const files = filesBelow('.', /\.md$/);
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap((file) => wideLines(file, proseReader()))).toEqual([]);
});
