// Tables are no wider than the terminal, and say the same at every width.

import { describe, expect, it } from 'vitest';
import { renderFields, renderTable } from '../../common/command-line/table.ts';

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

it('a table of every key that one signer lists is written', () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => [String(index), 'active']);
  expect(renderTable(['KEY', 'STATUS'], rows, 80).split('\n')).toHaveLength(rows.length + 2);
});

it('a row is a list of its fields where its columns leave no room for the last one', () => {
  expect(renderTable(['A', 'B', 'C'], [['x'.repeat(20), 'y'.repeat(20), 'one two']], 50)).toBe(
    `A  ${'x'.repeat(20)}\nB  ${'y'.repeat(20)}\nC  one two\n`,
  );
});

describe.each([80, 100, 120])('at %i columns', (columns) => {
  it.each([
    ['the key of a custody ceremony', 'arn:aws:kms:eu-central-1:111122223333:key/9437862b-3c6c-48f5-a3d5-d9504c1002e6'],
    ['a file', '/home/operator/.config/strongroom/deployments/mainnet/operator.yaml'],
  ])('a word that is copied stays whole: %s', (_, word) => {
    const table = renderTable(
      ['SHARE', 'STATUS', 'WHAT WAS FOUND'],
      [['1', 'SKIPPED', `default of ${word} here`]],
      columns,
    );
    expect(table.split(/\s+/)).toContain(word);
    expect(table.split('\n').filter((line) => line.length > columns)).toEqual([]);
  });
});

it('a word too long for its column has a line to itself, the rest stays in the column', () => {
  const word = 'w'.repeat(45);
  expect(
    renderTable(
      ['A', 'B', 'C'],
      [
        ['1', 'xx', `one ${word} two`],
        ['2', 'x', word],
      ],
      50,
    ),
  ).toBe(`A  B   C\n1  xx  one\n  ${word}\n       two\n2  x\n  ${word}\n`);
});
