// Slashing contract: a jump raises what a store refuses of every key, known or not, for every signer and for ever, also
// in what is exported.

import { describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import type { SlashableMessage, SlashingBackend, StoreFloor } from '../../signer/slashing/types.ts';
import {
  block,
  checkOne,
  collect,
  history,
  kindOf,
  publicKeyOf,
  stream,
  verdictName,
  vote,
} from '../support/slashing.ts';
import type { SlashingHarness } from './slashing-harness.ts';

const CHECKS_DURING_JUMP = 20;
const FLOOR: StoreFloor = { slot: 1000, sourceEpoch: 30, targetEpoch: 31 };
/** What the floor refuses of any key. */
const below = (key: number): SlashableMessage[] => [
  block(key, 1000, 'below'),
  block(key, 999, 'below'),
  vote(key, 30, 31, 'below'),
  vote(key, 29, 32, 'below'),
];

export function jumpsContract({ manySigners, freshStore, open, fresh }: SlashingHarness): void {
  describe('jumps', () => {
    it('after a jump every key refuses up to the floor, by every signer, and signs beyond it', async () => {
      const store = await freshStore();
      const one = await open(store);
      const other = manySigners ? await open(store) : one;
      await checkOne(other, block(1, 10, 'a'));
      await checkOne(other, vote(1, 3, 4, 'a'));
      expect((await one.jump(FLOOR)).floor).toEqual(FLOOR);
      for (const signer of [other, one]) {
        for (const key of [1, 2]) await expectRefused(signer, below(key));
        expect((await signer.identity()).floor).toEqual(FLOOR);
      }
      for (const key of [1, 2]) {
        expect(verdictName(await checkOne(other, block(key, 1001, 'b')))).toBe('safe');
        expect(verdictName(await checkOne(other, vote(key, 30, 32, 'b')))).toBe('safe');
        expect(verdictName(await checkOne(one, block(key, 1001, 'b')))).toBe('repeat');
      }
    });

    it('a floor rises member by member and never falls, and outlives the process', async () => {
      const store = await freshStore();
      const first = await open(store);
      await first.jump(FLOOR);
      const mixed = await first.jump({ slot: 1, sourceEpoch: 40, targetEpoch: 2 });
      expect(mixed.floor).toEqual({ ...FLOOR, sourceEpoch: 40 });
      await first.close();
      const second = await open(store);
      expect((await second.identity()).floor).toEqual({ ...FLOOR, sourceEpoch: 40 });
      await expectRefused(second, [...below(7), vote(7, 39, 50, 'x')]);
      expect(verdictName(await checkOne(second, vote(7, 40, 50, 'x')))).toBe('safe');
    });

    it('a jump keeps the id and the incarnation', async () => {
      const backend = await fresh();
      const before = await backend.identity();
      const after = await backend.jump(FLOOR);
      expect(after).toEqual({ ...before, floor: FLOOR });
      expect(await backend.identity()).toEqual(after);
    });

    it('what was signed above a floor stays signed, and the marks of keys are not those of the floor', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 2000, 'a'));
      await checkOne(backend, vote(1, 50, 60, 'a'));
      await backend.jump(FLOOR);
      expect(verdictName(await checkOne(backend, block(1, 2000, 'a')))).toBe('repeat');
      await expectRefused(backend, [block(1, 2000, 'b'), vote(1, 51, 59, 'b'), vote(1, 40, 70, 'b')]);
      await backend.jump({ slot: 9000, sourceEpoch: 100, targetEpoch: 101 });
      await expectRefused(backend, [block(1, 9000, 'b'), vote(1, 100, 101, 'b')]);
    });

    it('after a jump nothing up to the floor is a rollback, and what lies beyond it still is', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await backend.jump(FLOOR);
      const lost = { slot: 900, sourceEpoch: 20, targetEpoch: 21 };
      for (const key of [1, 2]) {
        const [verdict] = await backend.checkAndRecord([block(key, 1001, 'b')], [lost]);
        expect(verdict && verdictName(verdict)).toBe('safe');
        // A check may read the records of its own kind only.
        for (const [message, floors] of [
          [block(key, 1002, 'b'), { ...NO_MARKS, slot: 1002 }],
          [vote(key, 31, 32, 'b'), { ...NO_MARKS, sourceEpoch: 31 }],
          [vote(key, 31, 32, 'b'), { ...NO_MARKS, targetEpoch: 32 }],
        ] as const) {
          const [later] = await backend.checkAndRecord([message], [floors]);
          expect(later && verdictName(later)).toBe('slashing_rollback');
        }
      }
    });

    it('an export says the floor, for keys with entries and for keys that are named', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 3, 4, 'a'));
      await checkOne(backend, block(2, 2000, 'a'));
      await backend.jump(FLOOR);
      const named = await collect(backend.exportHistories([1, 2, 3].map(publicKeyOf)));
      expect(named.map(({ publicKey }) => publicKey)).toEqual([1, 2, 3].map(publicKeyOf));
      const copy = await fresh();
      await copy.importHistories(stream(named));
      for (const key of [1, 2, 3]) await expectRefused(copy, below(key));
      await expectRefused(copy, [block(2, 2000, 'b')]);
      expect(verdictName(await checkOne(copy, block(3, 1001, 'n')))).toBe('safe');
      expect(verdictName(await checkOne(copy, vote(3, 30, 32, 'n')))).toBe('safe');

      const whole = await fresh();
      await whole.importHistories(backend.exportHistories());
      for (const key of [1, 2]) await expectRefused(whole, below(key));
    });

    it('a file that is imported after a jump opens nothing below the floor', async () => {
      const backend = await fresh();
      await backend.jump(FLOOR);
      await backend.importHistories(
        stream([
          history(
            1,
            [
              [5, 'a'],
              [2000, 'b'],
            ],
            [
              [1, 2, 'a'],
              [50, 60, 'b'],
            ],
          ),
        ]),
      );
      await expectRefused(backend, [...below(1), block(1, 5, 'a'), vote(1, 1, 2, 'a')]);
      expect(verdictName(await checkOne(backend, block(1, 2001, 'n')))).toBe('safe');
    });

    it('a floor of the future is lowered while no other process is there; what was signed and imported stays', async () => {
      const store = await freshStore();
      const first = await open(store);
      await checkOne(first, block(1, 2000, 'a'));
      await checkOne(first, vote(1, 50, 60, 'a'));
      await first.jump({ slot: 90_000, sourceEpoch: 2_800, targetEpoch: 2_801 });
      await first.importHistories(
        stream([history(2, [[1500, 'x']], [[40, 45, 'x']]), history(1, [], [[52, 62, 'x']])]),
      );
      await first.jump(FLOOR, true);
      await first.close();
      const next = await open(store);
      expect((await next.identity()).floor).toEqual(FLOOR);
      for (const key of [1, 2, 3]) await expectRefused(next, below(key));
      await expectRefused(next, [
        block(1, 2000, 'b'),
        vote(1, 51, 60, 'b'),
        vote(1, 51, 62, 'b'),
        vote(1, 49, 63, 'b'),
      ]);
      await expectRefused(next, [block(2, 1500, 'b'), vote(2, 41, 45, 'b'), vote(2, 30, 44, 'b')]);
      for (const [key, slot, source, target] of [
        [1, 2001, 52, 63],
        [2, 1501, 40, 46],
        [3, 1001, 30, 32],
      ] as const) {
        expect(verdictName(await checkOne(next, block(key, slot, 'n')))).toBe('safe');
        expect(verdictName(await checkOne(next, vote(key, source, target, 'n')))).toBe('safe');
      }
      // One that is not there, or is lower, stays.
      expect((await next.jump({ ...FLOOR, slot: 5_000 }, true)).floor).toEqual(FLOOR);
      expect((await (await open(await freshStore())).jump(FLOOR, true)).floor).toBeNull();
    });

    it('checks that are under way meet the old floor or the new one, later ones only the new', async () => {
      const store = await freshStore();
      const signer = await open(store);
      const jumper = manySigners ? await open(store) : signer;
      const over = Promise.withResolvers<void>();
      const asking = Array.from({ length: 8 }, async (_, key) => {
        let slot = 1;
        const kindOfNext = async () => (await checkOne(signer, block(key, slot, slot++))).kind;
        // So many and no more: a key that signs without an end is one that no jump can overtake.
        for (let count = 0; count < CHECKS_DURING_JUMP; count++) {
          expect(['safe', 'refused']).toContain(await kindOfNext());
        }
        await over.promise;
        expect(await kindOfNext()).toBe('refused');
      });
      await checkOne(signer, block(99, 1, 'a'));
      await jumper.jump(FLOOR).finally(over.resolve);
      await Promise.all(asking);
      for (let key = 0; key < 8; key++) await expectRefused(signer, below(key));
    });
  });
}

async function expectRefused(backend: SlashingBackend, messages: readonly SlashableMessage[]): Promise<void> {
  for (const message of messages) {
    expect([message, kindOf(verdictName(await checkOne(backend, message)))]).toEqual([message, 'refused']);
  }
}
