// The floor of a jump: which messages a store refuses after it may have lost records. They are never beyond the
// present, so every key's marks are raised to it, with a tolerance for clocks. doubt/ says when a store is raised, and
// by which clock; restraints.ts keeps keys from signing far ahead of it.

import { type ChainTime, presentIn } from './future.ts';
import { marksBy } from './history/head.ts';
import { coversFloor } from './history/rules.ts';
import type { StoreFloor } from './types.ts';

export function floorAt(now: number, chain: ChainTime): StoreFloor {
  return presentIn(chain.tolerance.jumpSeconds, now, chain);
}

/** The opposite of a jump, for a floor of the future (`slashing lower-floor`). */
export function lowerOf(one: StoreFloor | null, other: StoreFloor): StoreFloor | null {
  return one && marksBy((mark) => Math.min(one[mark], other[mark]));
}

/** One that a clock made which was ahead: until its end nothing is signed. */
export interface FutureFloor {
  readonly floor: StoreFloor;
  /** When messages of the present lie beyond it; milliseconds since the Unix epoch. */
  readonly endsAt: number;
}

/** Undefined: it is not one of the future. */
export function futureFloor(floor: StoreFloor | null, now: number, chain: ChainTime): FutureFloor | undefined {
  if (floor === null || coversFloor(floorAt(now, chain), floor)) return undefined;
  const { genesisTimeSeconds, slotDurationMs, slotsPerEpoch } = chain;
  const slot = Math.max(floor.slot + 1, (floor.targetEpoch + 1) * slotsPerEpoch, floor.sourceEpoch * slotsPerEpoch);
  return { floor, endsAt: genesisTimeSeconds * 1000 + slot * slotDurationMs };
}

/** As far as a Date reaches. */
export function isoTime(milliseconds: number): string {
  return milliseconds > MAX_DATE_MS ? 'the end of time' : new Date(milliseconds).toISOString();
}
const MAX_DATE_MS = 8.64e15;

export function futureText({ floor, endsAt }: FutureFloor): string {
  return (
    `the floor of the slashing store lies in the future: nothing up to slot ${floor.slot} and epoch ${floor.targetEpoch} is ` +
    `signed, until ${isoTime(endsAt)}. A clock was ahead when the store was raised (strongroom slashing lower-floor)`
  );
}

export function floorFields<Mark>({ slot, sourceEpoch, targetEpoch }: Readonly<Record<keyof StoreFloor, Mark>>) {
  return { slot, source_epoch: sourceEpoch, target_epoch: targetEpoch };
}
