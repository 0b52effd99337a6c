// Slashing contract: a store says which one it is, and counts up while it is used, so that an older copy of it, or
// another store in its place, can be noticed.

import { describe, expect, it } from 'vitest';
import { block, checkOne, vote } from '../support/slashing.ts';
import type { SlashingHarness } from './slashing-harness.ts';

const ADVANCES = 40;

export function identityContract({ manySigners, freshStore, open, fresh }: SlashingHarness): void {
  describe('identity', () => {
    it('a store keeps its random id, for every signer and for ever; another store has another', async () => {
      const store = await freshStore();
      const first = await open(store);
      const { id, floor } = await first.identity();
      expect(id).toMatch(/^[0-9a-f]{32}$/);
      expect(floor).toBeNull();
      if (manySigners) expect((await (await open(store)).identity()).id).toBe(id);
      await checkOne(first, block(1, 10, 'a'));
      await first.advance();
      await first.close();
      expect((await (await open(store)).identity()).id).toBe(id);
      expect((await (await fresh()).identity()).id).not.toBe(id);
    });

    it('the revision rises by each advance, at least to what is asked, and never falls', async () => {
      const store = await freshStore();
      const first = await open(store);
      const before = (await first.identity()).revision;
      const raised = await first.advance();
      expect(raised).toBeGreaterThan(before);
      expect((await first.identity()).revision).toBe(raised);
      expect(await first.advance(raised + 1000)).toBeGreaterThanOrEqual(raised + 1000);
      const high = await first.advance(1);
      expect(high).toBeGreaterThan(raised + 1000);
      await first.close();
      expect((await (await open(store)).identity()).revision).toBe(high);
    });

    it('advances at once, by all signers, rise strictly for each and count one by one', async () => {
      const store = await freshStore();
      const signers = [await open(store)];
      if (manySigners) signers.push(await open(store));
      const before = (await signers[0]?.identity())?.revision ?? 0;
      const runs = signers.map(async (signer) => {
        const seen: number[] = [];
        for (let round = 0; round < ADVANCES; round++) {
          const answers = await Promise.all([signer.advance(), signer.advance()]);
          const last = seen.at(-1) ?? before;
          expect(Math.min(...answers)).toBeGreaterThan(last);
          seen.push(Math.max(...answers));
        }
        return seen.at(-1) ?? 0;
      });
      const highest = Math.max(...(await Promise.all(runs)));
      expect(highest).toBeGreaterThanOrEqual(before + signers.length * ADVANCES * 2);
      for (const signer of signers) expect((await signer.identity()).revision).toBe(highest);
    });

    it('the highest marks are those of all keys, each by itself, and null while nothing was signed', async () => {
      const backend = await fresh();
      expect(await backend.highestMarks()).toEqual({ blockSlot: null, sourceEpoch: null, targetEpoch: null });
      await checkOne(backend, block(1, 70, 'a'));
      await checkOne(backend, block(2, 50, 'a'));
      await checkOne(backend, vote(2, 3, 9, 'a'));
      await checkOne(backend, vote(3, 5, 6, 'a'));
      expect(await backend.highestMarks()).toEqual({ blockSlot: 70, sourceEpoch: 5, targetEpoch: 9 });
    });
  });
}
