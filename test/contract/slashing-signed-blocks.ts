// Slashing contract: what a store says was signed at a slot. It names the root that it holds, for every signer of the
// store and after a restart, and none where it holds none. Asking records nothing.

import { describe, expect, it } from 'vitest';
import {
  block,
  checkOne,
  collect,
  history,
  publicKeyOf,
  rootOf,
  stream,
  verdictName,
  vote,
} from '../support/slashing.ts';
import type { SlashingHarness } from './slashing-harness.ts';

export function signedBlocksContract({ complete, manySigners, freshStore, open, fresh }: SlashingHarness): void {
  describe('signed blocks', () => {
    it('are known by their roots, to every signer of the store, and when it is opened again', async () => {
      const store = await freshStore();
      const one = await open(store);
      const other = manySigners ? await open(store) : one;
      await checkOne(one, block(1, 10, 'a'));
      for (const signer of [one, other]) {
        expect(Buffer.from((await signer.signedBlockRoot(publicKeyOf(1), 10)) ?? [])).toEqual(rootOf('a'));
      }
      await one.close();
      if (other !== one) await other.close();
      const again = await open(store);
      expect(Buffer.from((await again.signedBlockRoot(publicKeyOf(1), 10)) ?? [])).toEqual(rootOf('a'));
    });

    it('are none at other slots and of other keys; asking records nothing', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(2, 3, 10, 'a'));
      const before = await collect(backend.exportHistories());
      for (const [key, slot] of [
        [1, 9],
        [1, 11],
        [2, 10],
        [3, 10],
      ] as const) {
        expect(await backend.signedBlockRoot(publicKeyOf(key), slot)).toBeNull();
      }
      expect(await collect(backend.exportHistories())).toEqual(before);
      expect(verdictName(await checkOne(backend, block(3, 10, 'b')))).toBe('safe');
    });

    it('that were refused are not held: the first one is', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      expect(verdictName(await checkOne(backend, block(1, 10, 'b')))).toBe('double_block');
      expect(Buffer.from((await backend.signedBlockRoot(publicKeyOf(1), 10)) ?? [])).toEqual(rootOf('a'));
    });

    it('before the last one are known to a store that keeps the complete history, and to no other', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, block(1, 11, 'b'));
      const earlier = await backend.signedBlockRoot(publicKeyOf(1), 10);
      if (complete) expect(Buffer.from(earlier ?? [])).toEqual(rootOf('a'));
      else expect(earlier).toBeNull();
      expect(Buffer.from((await backend.signedBlockRoot(publicKeyOf(1), 11)) ?? [])).toEqual(rootOf('b'));
    });

    it('that were imported have their roots, where a store keeps them; without a root there is none', async () => {
      const backend = await fresh();
      await backend.importHistories(stream([history(1, [[10, 'a']], []), history(2, [[10, null]], [])]));
      const imported = await backend.signedBlockRoot(publicKeyOf(1), 10);
      if (complete) expect(Buffer.from(imported ?? [])).toEqual(rootOf('a'));
      else expect(imported).toBeNull();
      expect(await backend.signedBlockRoot(publicKeyOf(2), 10)).toBeNull();
    });

    it('are not made by a jump or kept by a merge of other roots', async () => {
      const backend = await fresh();
      await backend.jump({ slot: 30, sourceEpoch: 3, targetEpoch: 4 });
      await checkOne(backend, block(1, 40, 'a'));
      for (const key of [1, 2]) expect(await backend.signedBlockRoot(publicKeyOf(key), 30)).toBeNull();
      await backend.importHistories(stream([history(1, [[40, 'b']], [])]));
      const held = await backend.signedBlockRoot(publicKeyOf(1), 40);
      expect(held === null || Buffer.from(held).equals(rootOf('a'))).toBe(true);
    });
  });
}
