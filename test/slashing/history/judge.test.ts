// What a refusal rests on: the head or one row where the store finds it, else the whole history.

import { expect, it } from 'vitest';
import { NEW_KEY } from '../../../signer/slashing/history/head.ts';
import { judgeVote } from '../../../signer/slashing/history/rules.ts';
import { vote } from '../../support/slashing.ts';

const state = {
  ...NEW_KEY,
  highest: { slot: null, sourceEpoch: 8, targetEpoch: 9 },
  lowWater: { slot: null, sourceEpoch: 2, targetEpoch: 3 },
};

it.each([
  ['no entry was looked for', vote(1, 1, 5, 'x'), undefined, { kind: 'history' }],
  ['an entry that is surrounded was found', vote(1, 3, 8, 'x'), [vote(1, 4, 5, 'a')], 'surrounding_vote'],
  ['an entry that surrounds was found', vote(1, 5, 6, 'x'), [vote(1, 4, 8, 'a')], 'surrounded_vote'],
  ['none was found, and the marks refuse', vote(1, 1, 5, 'x'), [], 'source_below_low_water_mark'],
  ['none was found, and nothing refuses', vote(1, 3, 5, 'x'), [], { kind: 'history' }],
  ['the vote lies beyond all', vote(1, 8, 10, 'x'), [], { kind: 'safe', repeat: false }],
])('%s', (_name, message, against, expected) => {
  const judgement = judgeVote(message, state, null, [], against);
  expect(judgement).toEqual(typeof expected === 'string' ? { kind: 'refused', reason: expected } : expected);
});
