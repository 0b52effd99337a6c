// Slashing contract: keys that move between stores with their files, and come back. A file that meets records of its
// key is merged as minimal, whatever it leaves out; a key that is new keeps the entries of its file.

import { describe, expect, it } from 'vitest';
import type { SlashableMessage, SlashingBackend, ValidatorHistory } from '../../signer/slashing/types.ts';
import { sized, someOf } from '../support/scale.ts';
import {
  block,
  checkOne,
  collect,
  history,
  inTenure,
  kindOf,
  publicKeyOf,
  reinstate,
  stream,
  verdictName,
  vote,
} from '../support/slashing.ts';
import { slashablePairs } from '../support/slashing-checker.ts';
import { randomMessages } from '../support/slashing-model.ts';
import type { SlashingHarness } from './slashing-harness.ts';

const MOVES = 6;
const MESSAGES_A_MOVE = sized(30, 60);

export function movesContract({ complete, fresh }: SlashingHarness): void {
  describe('keys that move', () => {
    /** Signed elsewhere, with entries in between that the file does not list. */
    const pruned = history(1, [[150, 'f']], [[149, 150, 'f']]);
    const inTheGap = [block(1, 120, 'g'), block(1, 150, 'g'), vote(1, 110, 120, 'g'), vote(1, 149, 150, 'g')];

    it('a file beside older records leaves no gap, neither here nor in what is exported', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 100, 'a'));
      await checkOne(backend, vote(1, 99, 100, 'a'));
      await backend.importHistories(stream([pruned]));
      const copy = await fresh();
      await copy.importHistories(backend.exportHistories());
      for (const store of [backend, copy]) {
        await expectRefused(store, [...inTheGap, vote(1, 148, 151, 'g')]);
        expect(verdictName(await checkOne(store, block(1, 151, 'n')))).toBe('safe');
        expect(verdictName(await checkOne(store, vote(1, 149, 151, 'n')))).toBe('safe');
      }
    });

    it('a file beside newer records leaves no gap either', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 200, 'a'));
      await checkOne(backend, vote(1, 199, 200, 'a'));
      await backend.importHistories(stream([pruned]));
      await expectRefused(backend, [...inTheGap, block(1, 170, 'g'), vote(1, 160, 170, 'g'), vote(1, 150, 210, 'g')]);
      expect(verdictName(await checkOne(backend, block(1, 201, 'n')))).toBe('safe');
    });

    it('a kind that the store knows nothing of is merged as minimal too, once it has records of the key', async () => {
      const backend = await fresh();
      await checkOne(backend, vote(1, 99, 100, 'a'));
      await backend.importHistories(
        stream([
          history(
            1,
            [
              [10, 'b'],
              [20, 'b'],
            ],
            [],
          ),
        ]),
      );
      await expectRefused(backend, [block(1, 15, 'g'), block(1, 9, 'g'), block(1, 20, 'g')]);
      expect(verdictName(await checkOne(backend, block(1, 21, 'n')))).toBe('safe');
    });

    it('the parts of one file are merged together: an earlier part is no record', async () => {
      const backend = await fresh();
      const parts = [
        history(1, [[30, 'a']], []),
        history(2, [[7, 'a']], []),
        history(1, [[10, 'b']], [[1, 2, 'b']]),
        history(1, [], [[5, 6, 'c']]),
      ];
      expect(await backend.importHistories(stream(parts))).toMatchObject({ validators: 2 });
      const expected = complete ? 'safe' : 'refused';
      expect(kindOf(verdictName(await checkOne(backend, block(1, 20, 'n'))))).toBe(expected);
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 3, 4, 'n'))))).toBe(expected);
      await expectRefused(backend, [block(1, 10, 'n'), block(1, 30, 'n'), block(1, 9, 'n'), vote(1, 5, 6, 'n')]);
    });

    it('a key that is new to the store keeps the entries of its file, unless it is merged as minimal', async () => {
      const file = history(
        1,
        [
          [10, 'a'],
          [30, 'b'],
        ],
        [
          [1, 2, 'a'],
          [5, 9, 'b'],
        ],
      );
      const backend = await fresh();
      await backend.importHistories(stream([file]));
      const gap = complete ? 'safe' : 'refused';
      expect(kindOf(verdictName(await checkOne(backend, block(1, 20, 'n'))))).toBe(gap);
      expect(kindOf(verdictName(await checkOne(backend, vote(1, 3, 5, 'n'))))).toBe(gap);
      const minimal = await fresh();
      await minimal.importHistories(stream([file]), { strategy: 'minimal' });
      await expectRefused(minimal, [block(1, 20, 'n'), vote(1, 3, 5, 'n'), vote(1, 4, 10, 'n')]);
      expect(verdictName(await checkOne(minimal, block(1, 31, 'n')))).toBe('safe');
    });

    it.runIf(complete)('a complete merge is for whoever knows that the file lists everything', async () => {
      const backend = await fresh();
      await checkOne(backend, block(1, 100, 'a'));
      await checkOne(backend, vote(1, 99, 100, 'a'));
      await backend.importHistories(stream([pruned]), { strategy: 'complete' });
      expect(verdictName(await checkOne(backend, block(1, 120, 'n')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(1, 110, 120, 'n')))).toBe('safe');
      await expectRefused(backend, [block(1, 99, 'n'), block(1, 150, 'n'), vote(1, 98, 160, 'n')]);
    });

    it.each(someOf([21, 22, 23], 1))(
      'to and fro with pruned files, nothing slashable leaves either store (seed %i)',
      async (seed) => {
        const stores = [await fresh(), await fresh()] as const;
        const released: SlashableMessage[] = [];
        const keys = [0, 1].map(publicKeyOf);
        for (let move = 0; move < MOVES; move++) {
          const [here, there] = move % 2 === 0 ? stores : [stores[1], stores[0]];
          const messages = randomMessages({
            count: MESSAGES_A_MOVE,
            keys: 2,
            span: 30 + 4 * move,
            seed: seed * 100 + move,
          });
          const tenures = await here.tenures();
          for (const message of messages) {
            const asked = inTenure(tenures.get(message.publicKey) ?? 0, message);
            if ((await checkOne(here, asked)).kind === 'safe') released.push(message);
          }
          await here.endTenures(keys);
          const file = await collect(here.exportHistories(keys));
          await there.importHistories(stream(move % 3 === 0 ? file : file.map(endOf)));
          await reinstate(there, keys);
        }
        expect(released.length).toBeGreaterThan(MOVES * 2);
        expect(slashablePairs(released)).toEqual([]);
      },
    );
  });
}

/** What a program that keeps the last messages only would have written. */
function endOf({ publicKey, blocks, attestations }: ValidatorHistory): ValidatorHistory {
  const slots = blocks.map(({ slot }) => slot);
  const sources = attestations.map(({ sourceEpoch }) => sourceEpoch);
  const targets = attestations.map(({ targetEpoch }) => targetEpoch);
  return {
    publicKey,
    blocks: slots.length === 0 ? [] : [{ slot: Math.max(...slots), signingRoot: null }],
    attestations:
      targets.length === 0
        ? []
        : [{ sourceEpoch: Math.max(...sources), targetEpoch: Math.max(...targets), signingRoot: null }],
  };
}

async function expectRefused(backend: SlashingBackend, messages: readonly SlashableMessage[]): Promise<void> {
  for (const message of messages) {
    expect([message, kindOf(verdictName(await checkOne(backend, message)))]).toEqual([message, 'refused']);
  }
}
