// The threat table of docs/security.md: each cell names a test that is there, or says in bold what the attacker gets.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const [, section = ''] = readFileSync(join(ROOT, 'docs/security.md'), 'utf8').split('<a id="threats"></a>');
const [table = ''] = section.split('\n## Never sign');
const rows = table
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );

it('has a cell for each attacker and asset, with its test or with what is lost', () => {
  const [head = [], , ...attackers] = rows;
  expect(head).toHaveLength(5);
  expect(attackers.length).toBeGreaterThan(8);
  const problems = attackers.flatMap(([attacker, ...cells]) => [
    ...(cells.length === head.length - 1 ? [] : [`${attacker}: ${cells.length} cells`]),
    ...cells.flatMap((cell) => {
      const tests = [...cell.matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path);
      const missing = tests.filter((path) => !existsSync(join(ROOT, path)));
      if (missing.length > 0) return [`${attacker}: ${missing.join()} is not there`];
      return tests.length > 0 || /\*\*.+\*\*/.test(cell) ? [] : [`${attacker}: “${cell}” names no test`];
    }),
  ]);
  expect(problems).toEqual([]);
});
