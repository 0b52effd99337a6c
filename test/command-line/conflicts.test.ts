import { expect, it } from 'vitest';
import { sayConflicts } from '../../common/command-line/conflicts.ts';

it('names key and place of each conflict, a line each on any terminal, and how many more there are', () => {
  const listed = [
    { publicKey: '0xa1', slot: 7 },
    { publicKey: '0xb2', sourceEpoch: 1, targetEpoch: 2 },
  ];
  let said = '';
  const stderr = { isTTY: true, columns: 80, write: (text: string) => (said += text) };
  sayConflicts({ stderr }, 'the file', 3, listed);
  expect(said.split('\n')).toEqual([
    'the file and the records hold 3 slashable messages; both are kept, so nothing is',
    'weakened:',
    '  0xa1 block at slot 7',
    '  0xb2 vote with source epoch 1, target epoch 2',
    '  and 1 more',
    '  look for a second signer with these keys before you start this one',
    '',
  ]);
  said = '';
  sayConflicts({ stderr }, 'the file', 0, []);
  expect(said).toBe('');
});
