// The walks of docs/architecture.md: at most ten files each, each led to by an earlier one.

import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const MAX_FILES = 10;

const [, section = ''] = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8').split('\n## Four walks\n');
const [table = ''] = section.split('\n## ');
const walks = [...table.matchAll(/^\| (an? [a-z ]+) \| (`.*`) \|$/gm)].map(([, name = '', cells = '']) => ({
  name,
  files: [...cells.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
}));

function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const targets = [...text.matchAll(/(?:from |import\()'(\.{1,2}\/[^']+\.ts)'/g)];
  return targets.map(([, target = '']) => relative(ROOT, join(ROOT, dirname(file), target)));
}

it('there are four', () => {
  expect(walks.map(({ name }) => name)).toEqual([
    'a signature',
    'a boot',
    'a boot in an enclave',
    'an attested command',
  ]);
});

it.each(walks)('$name: each file is imported by one before it, and they are ten at most', ({ files }) => {
  const unexpected = files.filter((file, at) => at > 0 && !files.slice(0, at).flatMap(importsOf).includes(file));
  expect(unexpected).toEqual([]);
  expect(files.length).toBeGreaterThan(5);
  expect(files.length).toBeLessThanOrEqual(MAX_FILES);
});
