// Slashing contract: every message gets the verdict that EIP-3076 asks for, alone, in batches and in races.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import type { SlashableMessage, SlashingBackend } from '../../signer/slashing/types.ts';
import { unrestrained } from '../support/restrained.ts';
import { IS_WHOLE, sized, someOf } from '../support/scale.ts';
import {
  block,
  blockOf,
  checkOne,
  historiesOf,
  type InterchangeTest,
  kindOf,
  MAIN_ROOT,
  quietLog,
  stream,
  verdictName,
  vote,
  voteOf,
} from '../support/slashing.ts';
import { historyModel, randomMessages } from '../support/slashing-model.ts';
import { vectorJson, vectorNames } from '../support/vectors.ts';
import type { SlashingHarness, SlashingStore } from './slashing-harness.ts';
import { STREAMS, type StreamStep } from './slashing-streams.ts';

const RACERS = IS_WHOLE ? 64 : 24;
const RACE_ROUNDS = sized(2, 12);
const RANDOM_MESSAGES = sized(120, 600);

export function verdictsContract(harness: SlashingHarness): void {
  const { complete, manySigners, createStore, freshStore, open, fresh } = harness;
  describe('streams of messages', () => {
    /** Of all streams: each has a key of its own. */
    let store: SlashingStore | undefined;
    let backend: SlashingBackend;
    beforeAll(async () => {
      store = await createStore();
      backend = await store.open(MAIN_ROOT);
    });
    afterAll(async () => {
      await backend?.close();
      await store?.remove();
    });

    const streams = Object.entries(STREAMS).map(([name, steps], index) => [name, steps, index + 1] as const);
    it.each(streams)('%s', async (_name, steps, key) => {
      for (const step of steps) {
        const verdict = verdictName(await checkOne(backend, messageOf(step, key)));
        const [message, completeVerdict, minimalVerdict = kindOf(completeVerdict)] = step;
        const expected = complete ? completeVerdict : minimalVerdict;
        expect([message, complete ? verdict : kindOf(verdict)]).toEqual([message, expected]);
      }
    });

    it('random messages get exactly the verdicts of a brute-force reading of EIP-3076', async () => {
      const backend = await fresh();
      const model = historyModel({ complete });
      for (const message of randomMessages({ count: RANDOM_MESSAGES, keys: 3, span: 24, seed: 3076 })) {
        const verdict = kindOf(verdictName(await checkOne(backend, message)));
        expect([message, verdict]).toEqual([message, model(message)]);
      }
    });
  });

  const names = vectorNames('eip3076').filter((file) => file !== 'schema.json');
  it.each(someOf(names, 8))('official interchange test %s', async (file) => {
    const vector = vectorJson<InterchangeTest>(`eip3076/${file}`);
    if (vector === undefined) throw new Error('the vector vanished');
    const backend = await fresh(vector.genesis_validators_root);
    for (const step of vector.steps) {
      expect(step.should_succeed).toBe(true);
      // Its files list everything that was signed; a store that keeps the highest marks only has one way to merge them.
      const strategy = complete ? 'complete' : 'by_key';
      await backend.importHistories(stream(historiesOf(step.interchange.data)), { strategy });
      const checks = [
        ...step.blocks.map((entry) => [blockOf(entry), entry] as const),
        ...step.attestations.map((entry) => [voteOf(entry), entry] as const),
      ];
      for (const [message, entry] of checks) {
        const expected = complete ? entry.should_succeed_complete : entry.should_succeed;
        const verdict = await checkOne(backend, message);
        expect([message, verdictName(verdict), verdict.kind === 'safe']).toEqual([
          message,
          verdictName(verdict),
          expected,
        ]);
      }
    }
  });

  describe('batches', () => {
    it('verdicts come in the order of the messages, and a refusal does not touch its neighbours', async () => {
      const backend = await fresh();
      await checkOne(backend, block(2, 10, 'a'));
      await checkOne(backend, vote(3, 1, 2, 'a'));
      const batch = [block(1, 10, 'a'), block(2, 10, 'b'), vote(3, 1, 2, 'a'), vote(4, 3, 2, 'x'), vote(5, 0, 1, 'a')];
      const verdicts = await backend.checkAndRecord(batch, batch.map(noFloors));
      expect(verdicts.map(verdictName)).toEqual(['safe', 'double_block', 'repeat', 'source_after_target', 'safe']);
    });

    it('a batch of the largest size is recorded whole', async () => {
      const backend = await fresh();
      const size = backend.batchLimits.maxMessages;
      const batch = Array.from({ length: size }, (_, key) =>
        key % 2 === 0 ? block(key, 5, 'a') : vote(key, 1, 2, 'a'),
      );
      const first = await backend.checkAndRecord(batch, batch.map(noFloors));
      expect(new Set(first.map(verdictName))).toEqual(new Set(['safe']));
      const again = await backend.checkAndRecord(batch, batch.map(noFloors));
      expect(new Set(again.map(verdictName))).toEqual(new Set(['repeat']));
    });
  });

  describe('races', () => {
    const conflicts: Record<string, (round: number, racer: number) => SlashableMessage> = {
      'blocks at one slot': (round, racer) => block(1, 10 + round, `${round} ${racer}`),
      'votes for one target': (round, racer) => vote(1, round, 10 + round, `${round} ${racer}`),
      'votes that surround each other': (round, racer) =>
        vote(1, 1000 * round + racer, 1000 * round + 900 - racer, `${round} ${racer}`),
    };

    it.each(Object.entries(conflicts))(
      `${RACERS} concurrent conflicting requests (%s): exactly one wins, in every round`,
      async (_name, message) => {
        const protection = new SlashingProtection(
          unrestrained(await fresh()),
          {},
          { clock: systemClock, log: quietLog },
        );
        for (let round = 0; round < RACE_ROUNDS; round += 1) {
          const racers = Array.from({ length: RACERS }, (_, racer) => protection.check(message(round, racer)));
          const outcomes = await Promise.all(racers);
          expect(outcomes.filter((outcome) => outcome.kind === 'safe')).toEqual([{ kind: 'safe', repeat: false }]);
        }
      },
    );

    it.each(Object.entries(conflicts))(
      'the same below the grouping, in batches of their own (%s): never two winners',
      async (_name, message) => {
        const store = await freshStore();
        const signers = [await open(store)];
        if (manySigners) signers.push(await open(store));
        for (let round = 0; round < RACE_ROUNDS; round += 1) {
          const racers = Array.from({ length: RACERS }, async (_, racer) => {
            const signer = signers[racer % signers.length];
            if (signer === undefined) throw new Error('no signer');
            return checkOne(signer, message(round, racer));
          });
          const settled = await Promise.allSettled(racers);
          const winners = settled.filter((one) => one.status === 'fulfilled' && one.value.kind === 'safe');
          expect(winners).toHaveLength(1);
        }
      },
    );
  });
}

function messageOf([text]: StreamStep, key: number): SlashableMessage {
  const [kind, first, second, third] = text.split(' ');
  if (kind === 'B') return block(key, Number(first), String(second));
  return vote(key, Number(first), Number(second), String(third));
}

function noFloors() {
  return NO_MARKS;
}
