// Slashing contract: records outlive the process, belong to one network, and are missed when they are gone.

import { describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { block, checkOne, kindOf, MAIN_ROOT, OTHER_ROOT, verdictName, vote } from '../support/slashing.ts';
import type { SlashingHarness } from './slashing-harness.ts';

export function durabilityContract({ complete, freshStore, open, fresh }: SlashingHarness): void {
  describe('durability and binding', () => {
    it('what was recorded is refused after the store is opened again', async () => {
      const store = await freshStore();
      const first = await open(store);
      await checkOne(first, block(1, 10, 'a'));
      await checkOne(first, vote(1, 3, 4, 'a'));
      await first.close();
      const second = await open(store);
      expect(verdictName(await checkOne(second, block(1, 10, 'b')))).toBe('double_block');
      expect(verdictName(await checkOne(second, vote(1, 3, 4, 'b')))).toBe('double_vote');
      expect(verdictName(await checkOne(second, vote(1, 3, 4, 'a')))).toBe('repeat');
      expect(await second.status()).toMatchObject({ validators: 1, genesisValidatorsRoot: MAIN_ROOT });
    });

    it('a store of another network is refused when it is opened, with a clear error', async () => {
      const store = await freshStore();
      await (await open(store, MAIN_ROOT)).close();
      await expect(store.open(OTHER_ROOT)).rejects.toThrow(/genesis validators root/i);
      const again = await open(store, MAIN_ROOT);
      expect(verdictName(await checkOne(again, block(1, 1, 'a')))).toBe('safe');
    });

    it('a closed backend is unavailable, and closing twice does no harm', async () => {
      const backend = await fresh();
      await backend.checkHealth(new AbortController().signal);
      await backend.close();
      await backend.close();
      await expect(checkOne(backend, block(1, 1, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
      await expect(backend.checkHealth(new AbortController().signal)).rejects.toMatchObject({
        reason: 'slashing_unavailable',
      });
    });
  });

  describe('floors: what this process knows it recorded', () => {
    it('a store that holds less answers slashing_rollback for that key, and records nothing of it', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 3, 4, 'a'));
      const batch = [block(1, 20, 'b'), block(2, 20, 'b')];
      const verdicts = await backend.checkAndRecord(batch, [{ ...NO_MARKS, slot: 11 }, NO_MARKS]);
      // What was put back may lack messages of other keys, too; a store of single records decides about each alone.
      const other = complete ? 'slashing_unavailable' : 'safe';
      expect(verdicts.map(verdictName)).toEqual(['slashing_rollback', other]);
      const rival = verdictName(await checkOne(backend, block(2, 20, 'c')));
      expect(kindOf(rival)).toBe(other === 'safe' ? 'refused' : 'safe');
      const votes = [vote(1, 4, 5, 'b')];
      for (const floors of [
        { ...NO_MARKS, sourceEpoch: 4 },
        { ...NO_MARKS, targetEpoch: 5 },
      ]) {
        expect((await backend.checkAndRecord(votes, [floors])).map(verdictName)).toEqual(['slashing_rollback']);
      }
      expect(verdictName(await checkOne(backend, block(1, 20, 'c')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(1, 4, 5, 'c')))).toBe('safe');
    });

    it('a key that vanished from the store is noticed', async () => {
      const backend = await fresh();
      const verdicts = await backend.checkAndRecord([block(1, 20, 'b')], [{ ...NO_MARKS, slot: 10 }]);
      expect(verdicts.map(verdictName)).toEqual(['slashing_rollback']);
    });

    it('a store that holds as much, or more, is good', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 3, 4, 'a'));
      const floors = { slot: 10, sourceEpoch: 3, targetEpoch: 4 };
      expect((await backend.checkAndRecord([block(1, 11, 'b')], [floors])).map(verdictName)).toEqual(['safe']);
      expect((await backend.checkAndRecord([block(1, 12, 'c')], [floors])).map(verdictName)).toEqual(['safe']);
    });
  });
}
