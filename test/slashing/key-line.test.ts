import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { keyLine } from '../../signer/slashing/key-line.ts';

it('a line of keys keeps the order of a set, whatever is added and taken out', () => {
  const key = fc.integer({ min: 0, max: 9 }).map((number) => `0x${number}` as const);
  const steps = fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'take first', 'clear'), key), { maxLength: 100 });
  fc.assert(
    fc.property(steps, (sequence) => {
      const line = keyLine();
      const set = new Set<`0x${string}`>();
      for (const [step, publicKey] of sequence) {
        const [first] = set;
        expect(line.first).toBe(first);
        expect(line.size).toBe(set.size);
        if (step === 'add') {
          line.add(publicKey);
          set.add(publicKey);
        } else if (step === 'clear') {
          line.clear();
          set.clear();
        } else {
          const gone = step === 'delete' ? publicKey : first;
          if (gone !== undefined) expect(line.delete(gone)).toBe(set.delete(gone));
        }
      }
    }),
  );
});
