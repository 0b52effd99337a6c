// Tables are no wider than the terminal, and say the same at every width.

import { describe, expect, it } from 'vitest';
import { renderFields, renderTable } from '../../command-line/table.ts';

const HEADINGS = ['ACCESSOR', 'KIND', 'EXPIRES AT', 'POLICIES (DESCRIPTION)'];
const ROWS = [
  [
    'acc_000102030405060708090a0b0c0d0e0f',
    'client',
    '2026-03-01T08:00:00.000Z',
    'validator-client, monitoring (the client in Frankfurt)',
  ],
  ['acc_100102030405060708090a0b0c0d0e0f', 'management', 'never', ''],
];

describe.each([60, 80, 100, 120])('at %i columns', (columns) => {
  it('a table fits', () => {
    const table = renderTable(HEADINGS, ROWS, columns);
    expect(table.split('\n').filter((line) => line.length > columns)).toEqual([]);
    const words = table.replaceAll(/\s+/g, ' ');
    for (const word of [...HEADINGS, ...ROWS.flat()].flatMap((cell) => cell.split(' '))) expect(words).toContain(word);
  });

  it('fields fit, and a word is broken only where it is longer than a line', () => {
    const fields = renderFields([['slashing store', 'one two three four five six seven eight '.repeat(4)]], columns);
    expect(fields.split('\n').filter((line) => line.length > columns)).toEqual([]);
    expect(fields).not.toMatch(/\b(?:o|on|tw|thre|fou|fiv|si|seve|eigh)\n/);
  });
});

it('a row is a list of its fields where its columns leave no room for the last one', () => {
  expect(renderTable(['A', 'B', 'C'], [['x'.repeat(20), 'y'.repeat(20), 'one two']], 50)).toBe(
    `A  ${'x'.repeat(20)}\nB  ${'y'.repeat(20)}\nC  one two\n`,
  );
});
