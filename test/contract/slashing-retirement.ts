// Slashing contract: a key that left a store is refused there by every signer from that moment, so that the file that
// is exported afterwards is final.

import { describe, expect, it } from 'vitest';
import type { SlashableMessage, SlashingBackend } from '../../enclave/slashing/types.ts';
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

const FINAL_ROUNDS = 5;
const STEPS_UNTIL_RETIREMENT = 3;
/** Two messages each: fewer than a retirement may lose races. */
const STEPS_DURING_RETIREMENT = 20;

export function retirementContract({ manySigners, freshStore, open, fresh }: SlashingHarness): void {
  describe('retired keys', () => {
    it('are refused by every signer at once, whatever is asked, and the others are not', async () => {
      const store = await freshStore();
      const one = await open(store);
      const other = manySigners ? await open(store) : one;
      for (const signer of [one, other]) await checkOne(signer, block(1, 10, 'a'));
      await checkOne(other, vote(1, 3, 4, 'a'));
      await one.retire([publicKeyOf(1)]);
      for (const signer of [other, one]) {
        await expectRetired(signer, [block(1, 10, 'a'), block(1, 11, 'b'), block(1, 5, 'b')]);
        await expectRetired(signer, [vote(1, 3, 4, 'a'), vote(1, 4, 5, 'b'), vote(1, 2, 6, 'b')]);
        expect(verdictName(await checkOne(signer, block(2, 10, 'a')))).toMatch(/^safe$|^repeat$/);
        expect(await signer.retiredKeys()).toEqual([publicKeyOf(1)]);
      }
    });

    it('stay retired when the store is opened again, after an import, a jump and pruning', async () => {
      const store = await freshStore();
      const first = await open(store);
      await checkOne(first, block(1, 10, 'a'));
      await first.retire([publicKeyOf(1), publicKeyOf(2)]);
      await first.close();
      const second = await open(store);
      await second.importHistories(stream([history(1, [[20, 'b']], []), history(2, [[20, 'b']], [[1, 2, 'b']])]));
      await second.jump({ slot: 30, sourceEpoch: 3, targetEpoch: 4 });
      while ((await second.pruneStep(100)) > 0);
      for (const key of [1, 2]) await expectRetired(second, [block(key, 100, 'n'), vote(key, 10, 11, 'n')]);
      expect(await second.retiredKeys()).toEqual([1, 2].map(publicKeyOf));
    });

    it('sign again once they are reinstated, and their records are as they were', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 3, 4, 'a'));
      const before = await collect(backend.exportHistories());
      await backend.retire([publicKeyOf(1)]);
      expect(await collect(backend.exportHistories())).toEqual(before);
      expect(await backend.reinstate([publicKeyOf(1), publicKeyOf(9)])).toEqual([publicKeyOf(1)]);
      expect(await backend.reinstate([publicKeyOf(1)])).toEqual([]);
      expect(await backend.retiredKeys()).toEqual([]);
      expect(verdictName(await checkOne(backend, block(1, 10, 'a')))).toBe('repeat');
      expect(verdictName(await checkOne(backend, block(1, 10, 'b')))).toBe('double_block');
      expect(verdictName(await checkOne(backend, vote(1, 3, 4, 'b')))).toBe('double_vote');
      expect(verdictName(await checkOne(backend, block(1, 11, 'c')))).toBe('safe');
    });

    it('that the store has no records of are refused too, and have none afterwards either', async () => {
      const backend = await fresh();
      await backend.retire([publicKeyOf(7)]);
      await expectRetired(backend, [block(7, 1, 'a'), vote(7, 0, 1, 'a')]);
      expect(await collect(backend.exportHistories([publicKeyOf(7)]))).toEqual([]);
      expect(await backend.retiredKeys([publicKeyOf(7), publicKeyOf(8)])).toEqual([publicKeyOf(7)]);
      expect(await backend.reinstate([publicKeyOf(7)])).toEqual([publicKeyOf(7)]);
      expect(verdictName(await checkOne(backend, block(7, 1, 'a')))).toBe('safe');
    });

    it('may be retired again, many at once, one named twice, and none', async () => {
      const backend = await fresh();
      await backend.retire([]);
      expect(await backend.reinstate([])).toEqual([]);
      expect(await backend.retiredKeys([])).toEqual([]);
      const keys = Array.from({ length: 150 }, (_, key) => publicKeyOf(key));
      for (const key of [3, 4]) await checkOne(backend, block(key, 10, 'a'));
      await backend.retire([...keys.slice(0, 10), publicKeyOf(3)]);
      await backend.retire(keys.toReversed());
      expect(await backend.retiredKeys()).toEqual(keys);
      expect(await backend.retiredKeys([publicKeyOf(200), publicKeyOf(4), publicKeyOf(3), publicKeyOf(4)])).toEqual(
        [3, 4].map(publicKeyOf),
      );
      expect(await backend.reinstate([...keys, publicKeyOf(3)])).toEqual(keys);
      expect(await backend.retiredKeys()).toEqual([]);
    });

    it.each(Array.from({ length: FINAL_ROUNDS }, (_, round) => round))(
      'are final in the file that is exported next, while signers ask on (round %i)',
      async (round) => {
        const store = await freshStore();
        const one = await open(store);
        const other = manySigners ? await open(store) : one;
        const released: SlashableMessage[] = [];
        const isUnderWay = Promise.withResolvers<void>();
        const isOver = Promise.withResolvers<void>();
        const asking = [1, 2].map(async (key) => {
          // So many and no more: a key that signs without an end is one that no retirement can overtake.
          for (let step = 1; step <= STEPS_UNTIL_RETIREMENT + round + STEPS_DURING_RETIREMENT; step++) {
            for (const message of [block(key, step, step), vote(key, step, step + 1, step)]) {
              const verdict = await checkOne(other, message);
              if (verdict.kind === 'safe') released.push(message);
              if (verdict.kind === 'refused') {
                expect(verdict.reason).toBe('key_retired');
                return;
              }
            }
            if (step === STEPS_UNTIL_RETIREMENT + round) isUnderWay.resolve();
          }
          await isOver.promise;
          expect(verdictName(await checkOne(other, block(key, 1000, 'after')))).toBe('key_retired');
        });
        await isUnderWay.promise;
        const keys = [1, 2].map(publicKeyOf);
        await one.retire(keys).finally(isOver.resolve);
        const file = await collect(one.exportHistories(keys));
        await Promise.all(asking);
        const copy = await fresh();
        await copy.importHistories(stream(file));
        expect(released.length).toBeGreaterThan(round * 2);
        for (const message of released) {
          const rival = { ...message, signingRoot: rootOf('rival') };
          expect([rival, (await checkOne(copy, rival)).kind]).toEqual([rival, 'refused']);
        }
      },
    );
  });
}

async function expectRetired(backend: SlashingBackend, messages: readonly SlashableMessage[]): Promise<void> {
  for (const message of messages) {
    expect([message, await checkOne(backend, message)]).toEqual([message, { kind: 'refused', reason: 'key_retired' }]);
  }
}
