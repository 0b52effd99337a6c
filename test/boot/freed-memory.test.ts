// When a signer gives freed memory back: often, but not beside votes, as long as that can be put off.

import { expect, it } from 'vitest';
import { betweenVotes } from '../../service/freed-memory.ts';

/** @param busyIn in which turns (of a second) something is signed @returns the turns in which memory was given back */
function turnsOf(busyIn: (turn: number) => boolean, turns: number): readonly number[] {
  const given: number[] = [];
  let turn = 0;
  const step = betweenVotes(
    () => busyIn(turn),
    () => given.push(turn),
  );
  for (turn = 1; turn <= turns; turn++) step();
  return given;
}

it('a signer without votes gives memory back every ten seconds', () => {
  expect(turnsOf(() => false, 35)).toEqual([10, 20, 30]);
});

it('votes put it off until a second has none', () => {
  expect(turnsOf((turn) => turn < 17, 30)).toEqual([17, 27]);
});

it('votes in every second put it off for a minute', () => {
  expect(turnsOf(() => true, 125)).toEqual([60, 120]);
});
