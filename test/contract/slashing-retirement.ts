// Slashing contract: a key that left a store is refused there by every signer from that moment, so that the file that
// is exported afterwards is final.

import { describe, expect, it } from 'vitest';
import type { SlashableMessage, SlashingBackend } from '../../signer/slashing/types.ts';
import { sized } from '../support/scale.ts';
import {
  block,
  checkOne,
  collect,
  history,
  inTenure,
  publicKeyOf,
  reinstate,
  retiredKeys,
  rootOf,
  stream,
  verdictName,
  vote,
} from '../support/slashing.ts';
import type { SlashingHarness } from './slashing-harness.ts';

const FINAL_ROUNDS = sized(1, 5);
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
      await one.endTenures([publicKeyOf(1)]);
      for (const signer of [other, one]) {
        await expectRetired(signer, [block(1, 10, 'a'), block(1, 11, 'b'), block(1, 5, 'b')]);
        await expectRetired(signer, [vote(1, 3, 4, 'a'), vote(1, 4, 5, 'b'), vote(1, 2, 6, 'b')]);
        expect(verdictName(await checkOne(signer, block(2, 10, 'a')))).toMatch(/^safe$|^repeat$/);
        expect(await retiredKeys(signer)).toEqual([publicKeyOf(1)]);
      }
    });

    it('stay retired when the store is opened again, after an import, a jump and pruning', async () => {
      const store = await freshStore();
      const first = await open(store);
      await checkOne(first, block(1, 10, 'a'));
      await first.endTenures([publicKeyOf(1), publicKeyOf(2)]);
      await first.close();
      const second = await open(store);
      await second.importHistories(stream([history(1, [[20, 'b']], []), history(2, [[20, 'b']], [[1, 2, 'b']])]));
      await second.jump({ slot: 30, sourceEpoch: 3, targetEpoch: 4 });
      while ((await second.pruneStep(100)) > 0);
      for (const key of [1, 2]) await expectRetired(second, [block(key, 100, 'n'), vote(key, 10, 11, 'n')]);
      expect(await retiredKeys(second)).toEqual([1, 2].map(publicKeyOf));
    });

    it('sign again once they are reinstated, and their records are as they were', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 3, 4, 'a'));
      const before = await collect(backend.exportHistories());
      await backend.endTenures([publicKeyOf(1)]);
      expect(await collect(backend.exportHistories())).toEqual(before);
      expect(await reinstate(backend, [publicKeyOf(1), publicKeyOf(9)])).toEqual([publicKeyOf(1)]);
      expect(await reinstate(backend, [publicKeyOf(1)])).toEqual([]);
      expect(await retiredKeys(backend)).toEqual([]);
      for (const message of [block(1, 10, 'a'), vote(1, 3, 4, 'b')]) await expectRetired(backend, [message]);
      const asked = async (message: SlashableMessage) => verdictName(await checkOne(backend, inTenure(2, message)));
      expect(await asked(block(1, 10, 'a'))).toBe('repeat');
      expect(await asked(block(1, 10, 'b'))).toBe('double_block');
      expect(await asked(vote(1, 3, 4, 'b'))).toBe('double_vote');
      expect(await asked(block(1, 11, 'c'))).toBe('safe');
      expect(await asked(block(1, 12, 'd'))).toBe('safe');
    });

    it('that the store has no records of are refused too, and have none afterwards either', async () => {
      const backend = await fresh();
      await backend.endTenures([publicKeyOf(7)]);
      await expectRetired(backend, [block(7, 1, 'a'), vote(7, 0, 1, 'a')]);
      expect(await collect(backend.exportHistories([publicKeyOf(7)]))).toEqual([]);
      expect(await retiredKeys(backend, [publicKeyOf(7), publicKeyOf(8)])).toEqual([publicKeyOf(7)]);
      expect(await reinstate(backend, [publicKeyOf(7)])).toEqual([publicKeyOf(7)]);
      await expectRetired(backend, [block(7, 1, 'a')]);
      expect(verdictName(await checkOne(backend, inTenure(2, block(7, 1, 'a'))))).toBe('safe');
      expect(verdictName(await checkOne(backend, inTenure(2, block(7, 2, 'b'))))).toBe('safe');
    });

    it('may be retired again, many at once, one named twice, and none', async () => {
      const backend = await fresh();
      await backend.endTenures([]);
      expect(await reinstate(backend, [])).toEqual([]);
      expect(await retiredKeys(backend, [])).toEqual([]);
      const keys = Array.from({ length: 150 }, (_, key) => publicKeyOf(key));
      for (const key of [3, 4]) await checkOne(backend, block(key, 10, 'a'));
      await backend.endTenures([...keys.slice(0, 10), publicKeyOf(3)]);
      await backend.endTenures(keys.toReversed());
      expect(await retiredKeys(backend)).toEqual(keys);
      expect(await retiredKeys(backend, [publicKeyOf(200), publicKeyOf(4), publicKeyOf(3), publicKeyOf(4)])).toEqual(
        [3, 4].map(publicKeyOf),
      );
      expect(await reinstate(backend, [...keys, publicKeyOf(3)])).toEqual(keys);
      expect(await retiredKeys(backend)).toEqual([]);
    });

    it('are in the next tenure for the copies that were read after it began, and for no other', async () => {
      const backend = await fresh();
      const key = publicKeyOf(1);
      await checkOne(backend, block(1, 10, 'a'));
      expect(await backend.tenures()).toEqual(new Map());
      expect(await backend.endTenures([key])).toEqual(new Map([[key, 1]]));
      expect(await backend.beginTenures(new Map([[key, 1]]))).toEqual(new Map([[key, 2]]));
      expect(await backend.tenures([key, publicKeyOf(2)])).toEqual(new Map([[key, 2]]));
      for (const tenure of [0, 1, 3, 4]) await expectRetired(backend, [inTenure(tenure, block(1, 11, 'b'))]);
      expect(verdictName(await checkOne(backend, inTenure(2, block(1, 11, 'b'))))).toBe('safe');
      // Written by a check in this tenure, the record still says so.
      expect(await backend.tenures()).toEqual(new Map([[key, 2]]));
      await expectRetired(backend, [block(1, 12, 'c')]);
    });

    it('end once more under another number, and nothing that read an earlier one begins', async () => {
      const backend = await fresh();
      const key = publicKeyOf(1);
      expect(await backend.endTenures([key])).toEqual(new Map([[key, 1]]));
      expect(await backend.endTenures([key])).toEqual(new Map([[key, 3]]));
      for (const tenure of [0, 1, 2, 4])
        expect(await backend.beginTenures(new Map([[key, tenure]]))).toEqual(new Map());
      expect(await backend.beginTenures(new Map([[key, 3]]))).toEqual(new Map([[key, 4]]));
      expect(await backend.beginTenures(new Map([[key, 4]]))).toEqual(new Map());
      expect(await backend.endTenures([key])).toEqual(new Map([[key, 5]]));
    });

    it('begin for exactly one of many that read the same number', async () => {
      const store = await freshStore();
      const one = await open(store);
      const signers = manySigners ? [one, await open(store), await open(store)] : [one, one, one];
      for (let round = 0; round < 5; round++) {
        const from = await one.endTenures([publicKeyOf(1)]);
        const begun = await Promise.all(signers.map((signer) => signer.beginTenures(from)));
        expect(begun.map(({ size }) => size).toSorted()).toEqual([0, 0, 1]);
      }
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
        await one.endTenures(keys).finally(isOver.resolve);
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
