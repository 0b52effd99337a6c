// Streams of messages of a key that is new to the store, in order, each with its verdict: with the complete history,
// and with the high-water marks only. A verdict is `safe`, `repeat` or the reason of the refusal.

import type { SlashingRefusal } from '../../signer/slashing/types.ts';

export type ExpectedVerdict = 'safe' | 'repeat' | SlashingRefusal;

/**
 * `A source target root` or `B slot root`, then the complete verdict, then the minimal one where it differs in kind.
 */
export type StreamStep = readonly [message: string, complete: ExpectedVerdict, minimal?: 'safe' | 'repeat' | 'refused'];

export const STREAMS: Readonly<Record<string, readonly StreamStep[]>> = {
  'blocks at rising slots are safe': [
    ['B 0 a', 'safe'],
    ['B 1 b', 'safe'],
    ['B 100 c', 'safe'],
  ],
  'the same block again is safe, another at its slot is not': [
    ['B 10 a', 'safe'],
    ['B 10 a', 'repeat'],
    ['B 10 b', 'double_block'],
    ['B 10 a', 'repeat'],
  ],
  'a slot in a gap of the history is safe, one below its start is not': [
    ['B 10 a', 'safe'],
    ['B 20 b', 'safe'],
    ['B 15 c', 'safe', 'refused'],
    ['B 15 d', 'double_block'],
    ['B 9 e', 'block_below_low_water_mark'],
    ['B 0 e', 'block_below_low_water_mark'],
    ['B 21 e', 'safe'],
  ],
  'the first block may be signed again at the low-water mark': [
    ['B 10 a', 'safe'],
    ['B 11 b', 'safe'],
    ['B 10 a', 'repeat', 'refused'],
    ['B 10 b', 'double_block'],
  ],
  'the largest slot is a slot like others': [
    ['B 9007199254740991 a', 'safe'],
    ['B 9007199254740991 a', 'repeat'],
    ['B 9007199254740991 b', 'double_block'],
    ['B 9007199254740990 b', 'block_below_low_water_mark'],
  ],
  'votes at rising targets are safe, with the same or a later source': [
    ['A 0 1 a', 'safe'],
    ['A 0 2 b', 'safe'],
    ['A 2 3 c', 'safe'],
  ],
  'the genesis vote, source and target 0': [
    ['A 0 0 a', 'safe'],
    ['A 0 0 a', 'repeat'],
    ['A 0 0 b', 'double_vote'],
    ['A 0 1 b', 'safe'],
  ],
  'the same vote again is safe, another for its target is not': [
    ['A 1 2 a', 'safe'],
    ['A 1 2 a', 'repeat'],
    ['A 1 2 b', 'double_vote'],
    ['A 0 2 b', 'double_vote'],
    ['A 2 2 b', 'double_vote'],
  ],
  'one root with two sources is no repeat': [
    ['A 1 2 a', 'safe'],
    ['A 0 2 a', 'double_vote'],
  ],
  'a vote that surrounds an earlier one is refused': [
    ['A 0 1 z', 'safe'],
    ['A 2 3 a', 'safe'],
    ['A 1 4 b', 'surrounding_vote'],
    ['A 0 9 b', 'surrounding_vote'],
    ['A 2 4 b', 'safe'],
  ],
  'a vote that surrounds one in the middle of the history is refused': [
    ['A 0 1 z', 'safe'],
    ['A 2 3 a', 'safe'],
    ['A 3 9 b', 'safe'],
    ['A 1 4 c', 'surrounding_vote'],
    ['A 2 4 c', 'safe', 'refused'],
  ],
  'a vote that an earlier one surrounds is refused': [
    ['A 0 1 z', 'safe'],
    ['A 1 9 a', 'safe'],
    ['A 2 8 b', 'surrounded_vote'],
    ['A 7 8 b', 'surrounded_vote'],
    ['A 1 8 b', 'safe', 'refused'],
    ['A 2 10 c', 'safe'],
  ],
  'a source larger than the target is no vote': [
    ['A 2 1 a', 'source_after_target'],
    ['A 0 1 b', 'safe'],
  ],
  'the source may stay at the low-water mark, the target may not': [
    ['A 5 10 a', 'safe'],
    ['A 5 11 b', 'safe'],
    ['A 4 9 c', 'source_below_low_water_mark'],
    ['A 5 9 c', 'target_below_low_water_mark'],
    ['A 5 10 a', 'repeat', 'refused'],
  ],
  'a refused message leaves no trace': [
    ['A 0 1 z', 'safe'],
    ['A 2 3 a', 'safe'],
    ['A 1 9 b', 'surrounding_vote'],
    ['A 3 4 c', 'safe'],
    ['B 10 a', 'safe'],
    ['B 3 b', 'block_below_low_water_mark'],
    ['B 11 c', 'safe'],
  ],
  'blocks and votes do not meet': [
    ['B 10 a', 'safe'],
    ['A 1 2 a', 'safe'],
    ['B 11 b', 'safe'],
    ['A 2 3 b', 'safe'],
  ],
};
