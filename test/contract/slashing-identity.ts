// Slashing contract: a store says which one it is, and keeps what tells it from its copies, or from another store in
// its place.

import { describe, expect, it } from 'vitest';
import { noteWeb3Signer } from '../../service/commands/slashing-notes.ts';
import { nextIncarnation, readIncarnations } from '../../signer/slashing/incarnation.ts';
import { sized } from '../support/scale.ts';
import { block, checkOne } from '../support/slashing.ts';
import type { SlashingHarness } from './slashing-harness.ts';

const ROUNDS = sized(3, 20);

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
      await first.close();
      expect((await (await open(store)).identity()).id).toBe(id);
      expect((await (await fresh()).identity()).id).not.toBe(id);
    });

    it('the incarnation is compared and set, and outlives the process', async () => {
      const store = await freshStore();
      const first = await open(store);
      const { incarnation } = await first.identity();
      const next = nextIncarnation(incarnation, null);
      expect(await first.incarnate('another', nextIncarnation(incarnation, null))).toBe(false);
      expect((await first.identity()).incarnation).toBe(incarnation);
      expect(await first.incarnate(incarnation, next)).toBe(true);
      // What is there already was written, perhaps by a call whose answer was lost.
      expect(await first.incarnate(incarnation, next)).toBe(true);
      expect(await first.incarnate(incarnation, nextIncarnation(incarnation, null))).toBe(false);
      await first.close();
      const { held } = readIncarnations((await (await open(store)).identity()).incarnation);
      expect(held).toEqual(readIncarnations(next).held);
    });

    it('remembers which databases of Web3Signer were merged, beside signers that renew the incarnation', async () => {
      const store = await freshStore();
      const first = await open(store);
      await noteWeb3Signer(first, 'db:5432/one');
      const { incarnation } = await first.identity();
      expect(await first.incarnate(incarnation, nextIncarnation(incarnation, null))).toBe(true);
      await Promise.all(['db:5432/two', 'db:5432/three', 'db:5432/one'].map((name) => noteWeb3Signer(first, name)));
      await first.close();
      const { web3signers, held } = readIncarnations((await (await open(store)).identity()).incarnation);
      expect([...web3signers].sort()).toEqual(['db:5432/one', 'db:5432/three', 'db:5432/two']);
      expect(held).toHaveLength(1);
    });

    it('of incarnations that are written at once, by all signers, exactly one is there, and one signer wrote it', async () => {
      const store = await freshStore();
      const signers = [await open(store)];
      if (manySigners) signers.push(await open(store), await open(store));
      for (let round = 0; round < ROUNDS; round++) {
        const { incarnation } = (await signers[0]?.identity()) ?? { incarnation: '' };
        const texts = [...signers, ...signers].map(() => nextIncarnation(incarnation, null));
        const won = await Promise.all(
          texts.map((text, turn) => signers[turn % signers.length]?.incarnate(incarnation, text)),
        );
        const winners = texts.filter((_text, turn) => won[turn] === true);
        expect(winners).toHaveLength(1);
        for (const signer of signers) expect((await signer.identity()).incarnation).toBe(winners[0]);
      }
    });
  });
}
