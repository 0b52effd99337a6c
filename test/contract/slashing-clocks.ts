// Slashing contract: what lies ahead of the clock of a signer by more than its tolerance is refused before the store
// hears of it, and a jump of another signer of the store covers whatever the first one may have signed.

import { describe, expect, it } from 'vitest';
import {
  type ChainTime,
  type ClockTolerance,
  FLEET_TOLERANCE,
  latestBy,
  MAX_CLOCK_TOLERANCE_SECONDS,
} from '../../signer/slashing/future.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { floorAt } from '../../signer/slashing/jump.ts';
import { type RestrainedStore, restrainStore } from '../../signer/slashing/restraints.ts';
import type {
  SlashableMessage,
  SlashingBackend,
  SlashingVerdict,
  ValidatorHistory,
} from '../../signer/slashing/types.ts';
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

const lone = (aheadSeconds: number): ClockTolerance => ({ aheadSeconds, jumpSeconds: MAX_CLOCK_TOLERANCE_SECONDS });
const TOLERANCES: readonly (readonly [string, ClockTolerance])[] = [
  ['a fleet', FLEET_TOLERANCE],
  ['an enclave without a state table', lone(12)],
  ['a lone signer', lone(60)],
  ['a lone signer with the least tolerance', lone(1)],
  ['a lone signer with the most', lone(MAX_CLOCK_TOLERANCE_SECONDS)],
];

/** Slots of a second, eight to an epoch. */
const chainOf = (tolerance: ClockTolerance): ChainTime => ({
  genesisTimeSeconds: 0,
  slotDurationMs: 1000,
  slotsPerEpoch: 8,
  tolerance,
});
const NOW_SECONDS = 80_000;

export function signerOver(store: SlashingBackend, tolerance: ClockTolerance, clock: () => number): RestrainedStore {
  return restrainStore(store, { latest: latestBy(clock, chainOf(tolerance)) });
}

async function verdictsOf(store: RestrainedStore, messages: readonly SlashableMessage[]): Promise<string[]> {
  const verdicts: readonly SlashingVerdict[] = await store.checkAndRecord(
    messages,
    messages.map(() => NO_MARKS),
  );
  return verdicts.map(verdictName);
}

/** Of the slot or epoch whose first second is this. */
const MESSAGES: Readonly<Record<string, (key: number, seconds: number) => SlashableMessage>> = {
  'a block': (key, seconds) => block(key, seconds, 'a'),
  'a vote, by its target': (key, seconds) => vote(key, 5, seconds / 8, 'a'),
  'a vote of the last source': (key, seconds) => vote(key, seconds / 8 - 1, seconds / 8, 'a'),
  // A jump allows sources from the epoch before on, so a source of the present is ahead, whatever its target.
  'a vote, by its source': (key, seconds) => vote(key, seconds / 8 - 1, seconds / 8 - 1, 'a'),
};

/** Of the second key: ahead until this second has come. */
const ENTRIES: Readonly<Record<string, (seconds: number) => ValidatorHistory>> = {
  'a block': (seconds) => history(2, [[seconds, 'a']], []),
  'a block among others': (seconds) =>
    history(
      2,
      [
        [5, 'a'],
        [seconds, null],
        [6, 'b'],
      ],
      [],
    ),
  'the target of a vote': (seconds) => history(2, [], [[1, seconds / 8, 'a']]),
  'the source of a vote': (seconds) => history(2, [], [[seconds / 8 - 1, seconds / 8 - 1, null]]),
  'an entry that was left out': (seconds) => ({
    ...history(2, [], [[1, 2, 'a']]),
    leftOut: { ...NO_MARKS, slot: seconds, blocks: 1, attestations: 0 },
  }),
};

export function clocksContract({ fresh, freshStore, manySigners, open }: SlashingHarness): void {
  describe('records of the future', () => {
    const floor = { slot: 800, sourceEpoch: 99, targetEpoch: 100 };

    it('are named by key, with the highest marks; those at the floor are not', async () => {
      const backend = await fresh();
      await backend.importHistories(
        stream([
          history(1, [[800, 'a']], [[99, 100, 'a']]),
          history(2, [[801, 'a']], [[1, 2, 'a']]),
          history(3, [], [[99, 101, 'a']]),
          history(4, [], [[100, 100, null]]),
        ]),
      );
      await backend.jump({ slot: 9000, sourceEpoch: 900, targetEpoch: 901 }); // marks are of the keys, not of the store
      expect(Object.fromEntries(await backend.marksBeyond(floor))).toEqual({
        [publicKeyOf(2)]: expect.objectContaining({ slot: 801 }),
        [publicKeyOf(3)]: expect.objectContaining({ targetEpoch: 101 }),
        [publicKeyOf(4)]: expect.objectContaining({ sourceEpoch: 100 }),
      });
    });

    it('of a key are forgotten by its operator: everything up to the floor is refused in their place', async () => {
      const store = await freshStore();
      const backend = await open(store);
      const far = history(
        1,
        [
          [700, 'a'],
          [5000, 'b'],
        ],
        [
          [50, 51, 'a'],
          [400, 500, 'b'],
        ],
      );
      await backend.importHistories(stream([far, history(2, [[5000, 'b']], [])]));
      expect(await backend.startAfresh(publicKeyOf(1), floor)).toBe(false);
      expect(await backend.startAfresh(publicKeyOf(3), floor)).toBe(false);
      expect(kindOf(verdictName(await checkOne(backend, block(1, 5000, 'c'))))).toBe('refused');

      await backend.endTenures([publicKeyOf(1), publicKeyOf(3)]);
      expect(await backend.startAfresh(publicKeyOf(1), floor)).toBe(true);
      expect(await backend.startAfresh(publicKeyOf(3), floor)).toBe(true);
      expect([...(await backend.marksBeyond(floor)).keys()]).toEqual([publicKeyOf(2)]);
      expect(verdictName(await checkOne(backend, block(1, 801, 'c')))).toBe('key_retired');
      const begun = await backend.beginTenures(await backend.tenures([1, 3].map(publicKeyOf)));
      if (!manySigners) await backend.close();
      const later = await open(store);
      for (const signer of manySigners ? [backend, later] : [later]) {
        for (const key of [1, 3]) {
          const copy = { tenure: begun.get(publicKeyOf(key)) ?? 0 };
          const refused = [
            block(key, 800, 'c'),
            block(key, 700, 'a'),
            vote(key, 99, 100, 'c'),
            vote(key, 98, 101, 'c'),
          ];
          for (const message of [...refused, vote(key, 50, 51, 'a')]) {
            expect([message, kindOf(verdictName(await checkOne(signer, { ...message, ...copy })))]).toEqual([
              message,
              'refused',
            ]);
          }
        }
      }
      for (const key of [1, 3]) {
        const copy = { tenure: begun.get(publicKeyOf(key)) ?? 0 };
        expect(verdictName(await checkOne(later, { ...block(key, 801, 'c'), ...copy }))).toBe('safe');
        expect(verdictName(await checkOne(later, { ...vote(key, 99, 101, 'c'), ...copy }))).toBe('safe');
        expect(verdictName(await checkOne(later, { ...vote(key, 99, 101, 'd'), ...copy }))).toBe('double_vote');
      }
      expect((await collect(later.exportHistories([publicKeyOf(1)])))[0]?.blocks.at(-1)?.slot).toBe(801);
    });
  });

  describe.each(TOLERANCES)('the clock of %s', (_whose, tolerance) => {
    const ahead = tolerance.aheadSeconds;

    it('refuses one second beyond the tolerance what it allows at it, and a second later takes it', async () => {
      const bare = await fresh();
      let now = 0;
      const signer = signerOver(bare, tolerance, () => now * 1000);
      for (const [key, message] of Object.values(MESSAGES).entries()) {
        now = NOW_SECONDS - ahead - 1;
        expect(await verdictsOf(signer, [message(key, NOW_SECONDS)])).toEqual(['ahead_of_clock']);
        now += 0.999;
        expect(await verdictsOf(signer, [message(key, NOW_SECONDS)])).toEqual(['ahead_of_clock']);
      }
      expect(await collect(bare.exportHistories())).toEqual([]);
      for (const [key, message] of Object.values(MESSAGES).entries()) {
        now = NOW_SECONDS - ahead;
        expect(await verdictsOf(signer, [message(key, NOW_SECONDS)])).toEqual(['safe']);
        now += 1;
        expect(await verdictsOf(signer, [message(key, NOW_SECONDS)])).toEqual(['repeat']);
      }
    });

    it('decides about each message of a batch alone, and the store hears of those that are not ahead', async () => {
      const bare = await fresh();
      const signer = signerOver(bare, tolerance, () => (NOW_SECONDS - ahead) * 1000);
      const early = Object.values(MESSAGES).map((message, key) => message(key, NOW_SECONDS + 8));
      const right = Object.values(MESSAGES).map((message, key) => message(key + 10, NOW_SECONDS));
      const far = [block(20, Number.MAX_SAFE_INTEGER, 'a'), vote(21, 1, Number.MAX_SAFE_INTEGER, 'a')];
      const batch = early.flatMap((message, index) => [message, right[index] ?? message]);
      expect(await verdictsOf(signer, [...batch, ...far])).toEqual([
        ...early.flatMap(() => ['ahead_of_clock', 'safe']),
        ...far.map(() => 'ahead_of_clock'),
      ]);
      const recorded = (await collect(bare.exportHistories())).map(({ publicKey }) => publicKey);
      expect(recorded).toEqual(right.map((_, key) => publicKeyOf(key + 10)).sort());
    });

    it.each(Object.entries(ENTRIES))(
      'refuses a file as a whole that has %s ahead, and says which',
      async (_what, entry) => {
        const bare = await fresh();
        const epoch = NOW_SECONDS / 8;
        let now = NOW_SECONDS - ahead - 0.001;
        const signer = signerOver(bare, tolerance, () => now * 1000);
        const file = () =>
          stream([history(1, [[5, 'a']], [[1, 2, 'a']]), entry(NOW_SECONDS), history(3, [[5, 'a']], [])]);
        await expect(signer.importHistories(file())).rejects.toMatchObject({
          reason: 'ahead_of_clock',
          message: expect.stringMatching(
            new RegExp(
              `nothing was imported: data\\[1\\], key ${publicKeyOf(2)}, has .*(${NOW_SECONDS}|${epoch}|${epoch - 1}) \\(1 `,
            ),
          ),
        });
        expect(await collect(bare.exportHistories())).toEqual([]);
        now += 0.001;
        expect(await signer.importHistories(file())).toMatchObject({ validators: 3 });
      },
    );

    it('takes what lies ahead when its operator says so, and then refuses until then what the file says', async () => {
      const bare = await fresh();
      const signer = signerOver(bare, tolerance, () => (NOW_SECONDS - ahead) * 1000);
      const far = history(1, [[NOW_SECONDS + 1, null]], [[1, NOW_SECONDS / 8 + 1, null]]);
      await signer.importHistories(stream([far]), { acceptsFuture: true });
      const [block1, vote1] = [block(1, NOW_SECONDS, 'a'), vote(1, NOW_SECONDS / 8 - 1, NOW_SECONDS / 8, 'a')];
      for (const message of [block1, vote1])
        expect((await verdictsOf(signer, [message])).map(kindOf)).toEqual(['refused']);
      const others = [block(2, NOW_SECONDS, 'a'), vote(3, NOW_SECONDS / 8 - 1, NOW_SECONDS / 8, 'a')];
      expect(await verdictsOf(signer, others)).toEqual(['safe', 'safe']);
    });

    it('lets nothing be signed that a jump at the same time does not cover, by any signer of the store', async () => {
      const others = TOLERANCES.map(([, other]) => other).filter(
        ({ jumpSeconds }) => jumpSeconds === tolerance.jumpSeconds,
      );
      for (const other of others) {
        const bare = await fresh();
        const signer = signerOver(bare, tolerance, () => (NOW_SECONDS - ahead) * 1000);
        const messages = Object.values(MESSAGES).map((message, key) => message(key, NOW_SECONDS));
        expect(await verdictsOf(signer, messages)).toEqual(messages.map(() => 'safe'));
        // Another store, which lacks these records, and is raised at that time.
        const lost = await fresh();
        await lost.jump(floorAt((NOW_SECONDS - ahead) * 1000, chainOf(other)));
        const contradicting = [
          block(0, NOW_SECONDS, 'b'),
          vote(1, 6, NOW_SECONDS / 8, 'b'),
          vote(2, NOW_SECONDS / 8 - 2, NOW_SECONDS / 8 + 1, 'b'),
          vote(3, NOW_SECONDS / 8 - 2, NOW_SECONDS / 8, 'b'),
        ];
        const verdicts = await lost.checkAndRecord(
          contradicting,
          contradicting.map(() => NO_MARKS),
        );
        expect(verdicts.map(({ kind }) => kind)).toEqual(contradicting.map(() => 'refused'));
      }
    });
  });
}
