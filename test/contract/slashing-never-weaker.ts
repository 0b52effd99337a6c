// Slashing contract: what was refused once is refused for ever, whatever is imported, pruned, or carried to another
// store. The files here are the awkward ones: older than the history, contradicting it, or with roots for messages that
// were refused.

import { describe, expect, it } from 'vitest';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../../signer/slashing/history/prune.ts';
import type { SlashableMessage, SlashingBackend, ValidatorHistory } from '../../signer/slashing/types.ts';
import { sized, someOf } from '../support/scale.ts';
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

const MESSAGES_BEFORE_A_FILE = sized(80, 300);
const LOW_PROBES = sized(50, 400);
/** Else the copy of a store is asked for next to nothing. */
const MIN_REFUSED = sized(15, 50);

export function neverWeakerContract({ complete, fresh }: SlashingHarness): void {
  describe('a refusal stays', () => {
    it('a block refused below the low-water mark is refused after a file says that it was signed', async () => {
      const backend = await prunedBackend(await fresh());
      const refused = [block(1, 100, 'B'), block(1, 50, 'B'), block(1, 120, 'B')];
      await expectRefused(backend, refused);
      const file = history(
        1,
        [
          [50, 'B'],
          [100, 'B'],
          [120, 'B'],
        ],
        [],
      );
      await backend.importHistories(stream([file]));
      await expectRefused(backend, refused);
      expect(verdictName(await checkOne(backend, block(1, FAR_SLOT, 'far')))).toBe('repeat');
    });

    it('a vote refused below a low-water mark is refused after a file says that it was signed', async () => {
      const backend = await prunedBackend(await fresh());
      const refused = [vote(1, 5, 6, 'B'), vote(1, 3, 4, 'B'), vote(1, 4, FAR_EPOCH + 9, 'B')];
      await expectRefused(backend, refused);
      const file = history(
        1,
        [],
        [
          [5, 6, 'B'],
          [3, 4, 'B'],
          [4, FAR_EPOCH + 9, 'B'],
        ],
      );
      await backend.importHistories(stream([file]));
      await expectRefused(backend, refused);
    });

    it('a vote refused because it surrounds, or is surrounded, is refused after a file says that it was signed', async () => {
      const backend = await fresh();
      await checkOne(backend, vote(1, 1, 2, 'a'));
      await checkOne(backend, vote(1, 5, 9, 'a'));
      await checkOne(backend, vote(1, 10, 12, 'a'));
      const refused = [vote(1, 6, 8, 'B'), vote(1, 4, 11, 'B')];
      await expectRefused(backend, refused);
      await backend.importHistories(stream([history(1, [], [[6, 8, 'B']]), history(1, [], [[4, 11, 'B']])]));
      await expectRefused(backend, refused);
    });

    it.each(['by_key', 'minimal', 'complete'] as const)(
      'a vote that a file surrounds, or has another for, is no repeat any more: it may never have been signed (%s)',
      async (strategy) => {
        const backend = await fresh();
        const recorded = [vote(1, 1, 2, 'a'), vote(1, 5, 6, 'a'), vote(1, 7, 12, 'a'), vote(1, 13, 14, 'a')];
        for (const message of recorded) expect(verdictName(await checkOne(backend, message))).toBe('safe');
        const file = history(
          1,
          [],
          [
            [4, 7, 'b'], // around the second
            [8, 11, 'b'], // inside the third
            [12, 14, 'b'], // for the target of the last
          ],
        );
        await backend.importHistories(stream([file]), { strategy });
        await expectRefused(backend, recorded.slice(1));
      },
    );

    it.each([
      ['first', <Entry>(entries: readonly Entry[]) => entries],
      ['last', <Entry>(entries: readonly Entry[]) => entries.toReversed()],
    ])('what a file contradicts is no repeat when it names its highest entries %s', async (_, inOrder) => {
      const backend = await fresh();
      const recorded = [vote(1, 99, 100, 'a'), block(1, 100, 'a')];
      for (const message of recorded) expect(verdictName(await checkOne(backend, message))).toBe('safe');
      const blocks = inOrder([[FAR_SLOT, 'x'] as const, [100, 'b'] as const]);
      const votes = inOrder([[FAR_EPOCH - 1, FAR_EPOCH, 'x'] as const, [99, 100, 'b'] as const]);
      await backend.importHistories(stream([history(1, blocks, votes)]), { strategy: 'minimal' });
      await expectRefused(backend, recorded);
    });

    it('a file that names marks and no entries refuses up to them; the key signs beyond, and is pruned', async () => {
      const backend = await fresh();
      const leftOut = { slot: 99, sourceEpoch: 4, targetEpoch: 5, blocks: 0, attestations: 0 };
      const file = { publicKey: publicKeyOf(1), blocks: [], attestations: [], leftOut };
      await backend.importHistories(stream([file]), { strategy: 'minimal' });
      await expectRefused(backend, [block(1, 99, 'a'), vote(1, 4, 5, 'a'), vote(1, 3, 9, 'a')]);
      for (const message of [vote(1, 10, 20, 'a'), vote(1, FAR_EPOCH - 1, FAR_EPOCH, 'a')])
        expect(verdictName(await checkOne(backend, message))).toBe('safe');
      while ((await backend.pruneStep(100)) > 0);
      if (complete) expect((await backend.status()).attestations).toBe(1);
      expect(verdictName(await checkOne(backend, block(1, 100, 'a')))).toBe('safe');
      await expectRefused(backend, [block(1, 99, 'a'), vote(1, 10, 20, 'a')]);
    });

    it.each(someOf([11, 12, 13, 14], 2))(
      'nothing random that was refused is signable after random imports (seed %i)',
      async (seed) => {
        const backend = await fresh();
        const refused: SlashableMessage[] = [];
        for (const message of randomMessages({ count: MESSAGES_BEFORE_A_FILE, keys: 3, span: 30, seed })) {
          if ((await checkOne(backend, message)).kind === 'refused') refused.push(message);
        }
        // The file holds messages that were refused, with their roots, among others.
        const others = randomMessages({ count: 40, keys: 3, span: 36, seed: seed + 100 });
        const listed = [...refused.filter((_, index) => index % 5 === 0), ...others];
        await backend.importHistories(stream(listed.map(historyOf)));
        await expectRefused(backend, refused);
      },
    );
  });

  describe('a file that is the end of a history whose middle is nowhere', () => {
    const inTheGap = [block(1, 120, 'g'), block(1, 149, 'g'), vote(1, 110, 120, 'g'), vote(1, 148, 149, 'g')];
    const file = history(1, [[150, null]], [[149, 150, null]]);

    async function older(): Promise<SlashingBackend> {
      const backend = await fresh();
      await checkOne(backend, block(1, 100, 'a'));
      await checkOne(backend, vote(1, 99, 100, 'a'));
      return backend;
    }

    it('merged as the whole of it, leaves what neither it nor the history lists to the history', async () => {
      const backend = await older();
      await backend.importHistories(stream([file]), { strategy: 'complete' });
      for (const message of inTheGap)
        expect((await checkOne(backend, message)).kind).toBe(complete ? 'safe' : 'refused');
    });

    it('merged as a minimal one, refuses everything up to its highest entries, here and in what is exported', async () => {
      const backend = await older();
      await backend.importHistories(stream([file]), { strategy: 'minimal' });
      await backend.importHistories(stream([history(1, [[30, 'b']], [[29, 30, 'b']])]), { strategy: 'minimal' });
      const copy = await fresh();
      await copy.importHistories(backend.exportHistories());
      for (const store of [backend, copy]) {
        await expectRefused(store, [...inTheGap, block(1, 150, 'g'), vote(1, 149, 150, 'g'), vote(1, 148, 151, 'g')]);
        expect(verdictName(await checkOne(store, block(1, 151, 'n')))).toBe('safe');
        expect(verdictName(await checkOne(store, vote(1, 149, 151, 'n')))).toBe('safe');
      }
    });
  });

  describe('a store made from the export of another refuses what the other refuses', () => {
    const ORIGINS: Record<string, (backend: SlashingBackend) => Promise<unknown>> = {
      'after pruning': prunedBackend,
      'after importing older entries': async (backend) => {
        await checkOne(backend, block(1, 100, 'a'));
        await checkOne(backend, vote(1, 30, 40, 'a'));
        await backend.importHistories(stream([history(1, [[5, null]], [[1, 2, null]])]));
      },
      'after pruning and importing older entries': async (backend) => {
        await prunedBackend(backend);
        await backend.importHistories(stream([history(1, [[5, 'b']], [[1, 2, 'b']]), history(1, [], [[0, 20, 'c']])]));
      },
      'after an import that contradicts itself': async (backend) => {
        await backend.importHistories(
          stream([
            history(
              1,
              [
                [10, 'a'],
                [10, 'b'],
              ],
              [
                [9, 6, null],
                [1, 23, null],
                [4, 12, 'b'],
              ],
            ),
          ]),
        );
      },
    };

    it.each(Object.entries(ORIGINS))('%s', async (_name, prepare) => {
      const source = await fresh();
      await prepare(source);
      const probes = [...lowProbes(), ...probesNear(FAR_SLOT, FAR_EPOCH)];
      const refused: SlashableMessage[] = [];
      for (const probe of probes) if ((await checkOne(source, probe)).kind === 'refused') refused.push(probe);
      expect(refused.length).toBeGreaterThan(MIN_REFUSED);
      const copy = await fresh();
      await copy.importHistories(stream(await collect(source.exportHistories())));
      await expectRefused(copy, refused);
    });
  });
}

const FAR_SLOT = RETAINED_SLOTS + 1000;
const FAR_EPOCH = RETAINED_EPOCHS + 1000;

/** Blocks and votes of key 1, the old ones forgotten where the store forgets. */
async function prunedBackend(backend: SlashingBackend): Promise<SlashingBackend> {
  for (const slot of [100, 110]) await checkOne(backend, block(1, slot, 'a'));
  for (const epoch of [5, 7]) await checkOne(backend, vote(1, epoch, epoch + 1, 'a'));
  await checkOne(backend, block(1, FAR_SLOT, 'far'));
  await checkOne(backend, vote(1, FAR_EPOCH - 1, FAR_EPOCH, 'far'));
  while ((await backend.pruneStep(100)) > 0);
  return backend;
}

async function expectRefused(backend: SlashingBackend, messages: readonly SlashableMessage[]): Promise<void> {
  for (const message of messages) {
    const verdict = kindOf(verdictName(await checkOne(backend, message)));
    expect([message, verdict]).toEqual([message, 'refused']);
  }
}

function historyOf(message: SlashableMessage): ValidatorHistory {
  const { publicKey } = message;
  return message.kind === 'block'
    ? { publicKey, blocks: [message], attestations: [] }
    : { publicKey, blocks: [], attestations: [message] };
}

function lowProbes(): SlashableMessage[] {
  const probes = randomMessages({ count: LOW_PROBES, keys: 1, span: 45, seed: 71 });
  return probes.map((probe) => ({ ...probe, publicKey: publicKeyOf(1) }));
}

function probesNear(slot: number, epoch: number): SlashableMessage[] {
  return [slot - 1, slot, 120, 99].flatMap((at, index) => [
    block(1, at, 'probe'),
    vote(1, index, epoch - 1, 'probe'),
    vote(1, index, epoch + 1 + index, 'probe'),
  ]);
}
