// Sorting in pieces and merging give what sorting gives.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { mergeSorted, sortInPieces } from '../../signer/keys/merge-sorted.ts';

const members = fc.uniqueArray(fc.string({ minLength: 1 }));

it('two sorted lists merge into the sorted list of both', () => {
  fc.assert(
    fc.property(members, fc.nat(), (all, seed) => {
      const at = all.length === 0 ? 0 : seed % all.length;
      const merged = mergeSorted(all.slice(0, at).sort(), all.slice(at).sort());
      expect(merged).toEqual([...all].sort());
    }),
  );
});

it('a list longer than many pieces is sorted, and the given one is left as it is', async () => {
  const shuffled = Array.from({ length: 50_000 }, (_, index) => String((index * 7919) % 50_021));
  const given = [...shuffled];
  expect(await sortInPieces(shuffled)).toEqual([...given].sort());
  expect(shuffled).toEqual(given);
});
