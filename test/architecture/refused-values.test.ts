// What a schema refuses is said in our words (common/formats/issues.ts): a file that shows an issue of Zod's asks for
// them wherever it parses.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAMS = ['ceremony', 'common', 'eif', 'enclave', 'operator', 'parent-proxy', 'service', 'signer'];

it('no word of Zod reaches a person', () => {
  const sources = PROGRAMS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  const parsing = sources.flatMap((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    const saysWhy = /\bissues\b/.test(text) && /\bmessage\b/.test(text);
    return saysWhy ? [...text.matchAll(/^.*safeParse\(.*$/gm)].map(([line]) => `${path}: ${line.trim()}`) : [];
  });
  expect(parsing.length).toBeGreaterThan(10);
  expect(parsing.filter((line) => !line.includes('explainIssue') && !line.includes('.data'))).toEqual([]);
});
