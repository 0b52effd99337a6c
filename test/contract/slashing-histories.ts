// Slashing contract: import, export and pruning. Whatever they do to the history, no verdict becomes weaker.

import { describe, expect, it } from 'vitest';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../../signer/slashing/history/prune.ts';
import type { SlashableMessage, ValidatorHistory } from '../../signer/slashing/types.ts';
import { sized } from '../support/scale.ts';
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
import { randomMessages } from '../support/slashing-model.ts';
import type { SlashingHarness } from './slashing-harness.ts';

const SIGNED_MESSAGES = sized(80, 300);
const COPY_PROBES = sized(80, 800);
const PRUNING_PROBES = sized(80, 600);
/** Else pruning is asked for next to nothing. */
const MIN_REFUSED = sized(25, 100);

export function historiesContract({ complete, fresh }: SlashingHarness): void {
  describe('import and export', () => {
    it('an import that fails on the way changes nothing', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      const before = await collect(backend.exportHistories());
      await expect(backend.importHistories(broken())).rejects.toThrow('the file ends here');
      expect(await collect(backend.exportHistories())).toEqual(before);
      expect(verdictName(await checkOne(backend, block(2, 50, 'x')))).toBe('safe');
      expect(verdictName(await checkOne(backend, block(1, 11, 'x')))).toBe('safe');
    });

    it('an import is merged with the history: both refuse', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 3, 4, 'a'));
      const summary = await backend.importHistories(
        stream([history(1, [[20, 'b']], [[5, 6, 'b']]), history(2, [[7, null]], [])]),
      );
      expect(summary).toMatchObject({ validators: 2 });
      expect(kindOf(verdictName(await checkOne(backend, block(1, 10, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, block(1, 20, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 5, 6, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 4, 7, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, block(2, 7, 'x'))))).toBe('refused');
      expect(verdictName(await checkOne(backend, vote(1, 5, 7, 'x')))).toBe('safe');
      expect(verdictName(await checkOne(backend, block(1, 21, 'x')))).toBe('safe');
    });

    it('an import of older entries opens nothing below what was signed', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 100, 'a'));
      await checkOne(backend, vote(1, 30, 40, 'a'));
      await backend.importHistories(stream([history(1, [[5, null]], [[1, 2, null]])]));
      expect(kindOf(verdictName(await checkOne(backend, block(1, 50, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 29, 50, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 10, 20, 'x'))))).toBe('refused');
    });

    it('two entries that contradict each other refuse everything at their place, whichever came first', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, vote(1, 1, 4, 'a'));
      await backend.importHistories(stream([history(1, [[10, 'b']], [[2, 4, 'b']])]));
      for (const root of ['a', 'b', 'c']) {
        expect(kindOf(verdictName(await checkOne(backend, block(1, 10, root))))).toBe('refused');
        expect(kindOf(verdictName(await checkOne(backend, vote(1, 1, 4, root))))).toBe('refused');
        expect(kindOf(verdictName(await checkOne(backend, vote(1, 2, 4, root))))).toBe('refused');
      }
      expect(verdictName(await checkOne(backend, block(1, 11, 'd')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(1, 2, 5, 'd')))).toBe('safe');
    });

    it('an entry whose source is larger than its target keeps refusing what it forbids', async () => {
      const backend = await fresh();
      await backend.importHistories(stream([history(1, [], [[8, 7, null]])]));
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 7, 9, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 6, 7, 'x'))))).toBe('refused');
      expect(verdictName(await checkOne(backend, vote(1, 8, 9, 'x')))).toBe('safe');
    });

    it.runIf(complete)('the summary counts keys, entries, repeats and conflicts', async () => {
      const backend = await fresh();
      const file = [history(1, [[10, 'a']], [[1, 2, 'a']]), history(2, [[5, null]], [])];
      expect(await backend.importHistories(stream(file))).toEqual({
        validators: 2,
        blocks: 2,
        attestations: 1,
        alreadyPresent: 0,
        conflicts: 0,
        conflicting: [],
      });
      expect(await backend.importHistories(stream(file))).toMatchObject({ alreadyPresent: 3, conflicts: 0 });
      const contradicting = [history(1, [[10, 'b']], [[1, 2, 'b']]), history(1, [], [[0, 9, 'c']])];
      expect(await backend.importHistories(stream(contradicting))).toMatchObject({
        validators: 1,
        alreadyPresent: 0,
        conflicts: 3,
        conflicting: [
          { publicKey: publicKeyOf(1), slot: 10 },
          { publicKey: publicKeyOf(1), sourceEpoch: 1, targetEpoch: 2 },
          { publicKey: publicKeyOf(1), sourceEpoch: 0, targetEpoch: 9 },
        ],
      });
    });

    it('an export gives the keys in ascending order, and only those asked for', async () => {
      const backend = await fresh();
      for (const key of [3, 1, 2]) await checkOne(backend, block(key, key, 'a'));
      expect(keysOf(await collect(backend.exportHistories()))).toEqual([1, 2, 3].map(publicKeyOf));
      const asked = await collect(backend.exportHistories([publicKeyOf(3), publicKeyOf(9), publicKeyOf(2)]));
      expect(keysOf(asked)).toEqual([2, 3].map(publicKeyOf));
      expect(asked[0]?.blocks.map(({ slot }) => slot)).toEqual([2]);
    });

    it.runIf(complete)('an export has each entry with its root, in order', async () => {
      const backend = await fresh();
      await backend.importHistories(stream([history(1, [[10, 'a']], [[1, 2, 'a']])]));
      await checkOne(backend, block(1, 20, 'c'));
      await checkOne(backend, block(1, 15, 'b'));
      await checkOne(backend, vote(1, 2, 3, 'b'));
      expect(await collect(backend.exportHistories())).toEqual([
        history(
          1,
          [
            [10, 'a'],
            [15, 'b'],
            [20, 'c'],
          ],
          [
            [1, 2, 'a'],
            [2, 3, 'b'],
          ],
        ),
      ]);
    });

    it('a store that imported the export of another gives the verdicts of the other', async () => {
      const source = await fresh();
      for (const message of randomMessages({ count: SIGNED_MESSAGES, keys: 4, span: 40, seed: 5 }))
        await checkOne(source, message);
      const copy = await fresh();
      await copy.importHistories(source.exportHistories());
      for (const probe of randomMessages({ count: COPY_PROBES, keys: 4, span: 44, seed: 6 })) {
        const original = kindOf(verdictName(await checkOne(source, probe)));
        const copied = kindOf(verdictName(await checkOne(copy, probe)));
        // Marks are imported without their roots: what could be repeated is refused.
        const expected = original === 'repeat' && !complete ? [original, 'refused'] : [original];
        expect([probe, expected]).toEqual([probe, expect.arrayContaining([copied])]);
      }
    });
  });

  describe('pruning', () => {
    it('works in bounded steps, ends, and weakens no verdict', async () => {
      const backend = await fresh();
      for (let step = 1; step <= 12; step += 1) {
        await checkOne(backend, block(1, step * 2, step));
        await checkOne(backend, vote(1, step, step * 2, step));
      }
      await backend.importHistories(
        stream([
          history(
            1,
            [],
            [
              [9, 6, null],
              [1, 23, null],
            ],
          ),
        ]),
      );
      const farSlot = RETAINED_SLOTS + 1000;
      const farEpoch = RETAINED_EPOCHS + 1000;
      await checkOne(backend, block(1, farSlot, 'far'));
      await checkOne(backend, vote(1, farEpoch - 1, farEpoch, 'far'));
      await checkOne(backend, block(2, 3, 'other key'));

      const probes = randomMessages({ count: PRUNING_PROBES, keys: 1, span: 30, seed: 7 }).filter(
        (probe) => probe.publicKey === publicKeyOf(0),
      );
      const refused: SlashableMessage[] = [];
      for (const probe of probes.map((one) => ({ ...one, publicKey: publicKeyOf(1) }))) {
        if ((await checkOne(backend, probe)).kind === 'refused') refused.push(probe);
      }
      const before = await backend.status();

      let pruned = 0;
      for (let deleted = await backend.pruneStep(3); deleted > 0; deleted = await backend.pruneStep(3)) {
        expect(deleted).toBeLessThanOrEqual(3);
        pruned += deleted;
      }
      expect(pruned).toBeGreaterThanOrEqual(complete ? 20 : 0);
      const after = await backend.status();
      expect(after.validators).toBe(before.validators);
      expect(before.blocks + before.attestations - after.blocks - after.attestations).toBe(pruned);

      expect(refused.length).toBeGreaterThan(MIN_REFUSED);
      for (const probe of refused) expect([probe, (await checkOne(backend, probe)).kind]).toEqual([probe, 'refused']);
      expect(verdictName(await checkOne(backend, block(1, farSlot, 'far')))).toBe('repeat');
      expect(verdictName(await checkOne(backend, vote(1, farEpoch - 1, farEpoch, 'far')))).toBe('repeat');
      expect(verdictName(await checkOne(backend, block(1, farSlot + 1, 'next')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(1, farEpoch, farEpoch + 1, 'next')))).toBe('safe');
      expect(verdictName(await checkOne(backend, block(2, 3, 'other key')))).toBe('repeat');
    });

    it('an import of what was pruned does not bring it back into reach', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 10, 'a'));
      await checkOne(backend, block(1, 12, 'b'));
      const old = await collect(backend.exportHistories());
      await checkOne(backend, block(1, RETAINED_SLOTS + 100, 'far'));
      while ((await backend.pruneStep(100)) > 0);
      await backend.importHistories(stream(old));
      expect(kindOf(verdictName(await checkOne(backend, block(1, 11, 'x'))))).toBe('refused');
      expect(kindOf(verdictName(await checkOne(backend, block(1, 50, 'x'))))).toBe('refused');
    });
  });
}

const keysOf = (histories: readonly ValidatorHistory[]) => histories.map(({ publicKey }) => publicKey);

async function* broken(): AsyncGenerator<ValidatorHistory> {
  yield history(1, [[50, null]], [[5, 6, null]]);
  yield history(2, [[50, null]], []);
  throw new Error('the file ends here');
}
