// What a reader leaves out of a history makes nothing signable that the whole history would refuse.

import { expect, it } from 'vitest';
import { historyCodes, rowIntegrity } from '../../../signer/slashing/history/codes.ts';
import { NEW_KEY } from '../../../signer/slashing/history/head.ts';
import { mergeKey } from '../../../signer/slashing/history/merge.ts';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../../../signer/slashing/history/prune.ts';
import { decideWithHistory } from '../../../signer/slashing/history/rules.ts';
import { historyReducer } from '../../../signer/slashing/interchange/reduce.ts';
import type { MergeStrategy, ValidatorHistory } from '../../../signer/slashing/types.ts';
import { randomNumbers } from '../../support/fault-proxy.ts';
import { sized, testSeed } from '../../support/scale.ts';
import { block, publicKeyOf, rootOf, vote } from '../../support/slashing.ts';

const SEED = testSeed(1);
const ROUNDS = sized(200, 200);
const publicKey = Buffer.from(publicKeyOf(1).slice(2), 'hex');
const codes = historyCodes(rowIntegrity({ genesisValidatorsRoot: new Uint8Array(32) }));

function judgeAfter(file: Omit<ValidatorHistory, 'publicKey'>, strategy: MergeStrategy) {
  const key = { publicKey, state: NEW_KEY, recorded: { blocks: [], attestations: [] }, floor: null };
  const { state, added } = mergeKey(key, file, strategy, codes);
  return (message: Parameters<typeof decideWithHistory>[0]) => decideWithHistory(message, state, null, added);
}

it(`random files, whole and reduced (TEST_SEED=${SEED})`, () => {
  const random = randomNumbers(SEED);
  const below = (limit: number) => Math.floor(random() * limit);
  let leftOut = 0;
  for (let round = 0; round < ROUNDS; round++) {
    // A few dense places, so that entries meet, and some far behind them.
    const place = (retained: number) => (below(3) === 0 ? below(40) : retained + 20 + below(40));
    const root = () => (below(4) === 0 ? null : rootOf(below(2)));
    const blocks = Array.from({ length: 12 }, () => ({ slot: place(RETAINED_SLOTS), signingRoot: root() }));
    const attestations = Array.from({ length: 12 }, () => {
      const targetEpoch = place(RETAINED_EPOCHS);
      return {
        sourceEpoch: Math.max(0, targetEpoch - below(below(2) === 0 ? 4 : 600)),
        targetEpoch,
        signingRoot: root(),
      };
    });
    const reducer = historyReducer();
    for (const entry of blocks) reducer.addBlock(entry);
    for (const entry of attestations) reducer.addVote(entry);
    const reduced = reducer.result();
    leftOut += (reduced.leftOut?.blocks ?? 0) + (reduced.leftOut?.attestations ?? 0);
    expect(reduced.blocks.length + (reduced.leftOut?.blocks ?? 0)).toBe(blocks.length);
    for (const strategy of ['by_key', 'minimal'] as const) {
      const whole = judgeAfter({ blocks, attestations }, strategy);
      const less = judgeAfter(reduced, strategy);
      for (let probe = 0; probe < 40; probe++) {
        const targetEpoch = place(RETAINED_EPOCHS);
        const message =
          below(2) === 0
            ? block(1, place(RETAINED_SLOTS), below(2))
            : vote(1, Math.max(0, targetEpoch - below(600)), targetEpoch, below(2));
        const isListed = whole(message);
        if (isListed.kind === 'refused')
          expect([round, message, less(message).kind]).toEqual([round, message, 'refused']);
      }
    }
  }
  expect(leftOut).toBeGreaterThan(ROUNDS);
});
