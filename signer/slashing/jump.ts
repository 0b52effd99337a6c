// The jump: which messages a store refuses after it may have lost records. They are never beyond the present, so every
// key's marks are raised to it, with a tolerance for clocks. The jump refuses a clock that is behind what any key has
// signed; restraints.ts keeps keys from signing far ahead of the clock.

import { SignerError } from '../api/errors.ts';
import type { HighWaterMarks, SlashingBackend, StoreFloor, StoreIdentity } from './types.ts';

export interface ChainTime {
  readonly genesisTimeSeconds: number;
  readonly slotDurationMs: number;
  readonly slotsPerEpoch: number;
}

/** Between the signer and whoever asked for the lost messages. */
export const CLOCK_TOLERANCE_SECONDS = 12;

export function floorAt(now: number, chain: ChainTime): StoreFloor {
  const slot = slotAt(now + CLOCK_TOLERANCE_SECONDS * 1000, chain);
  const epoch = Math.floor(slot / chain.slotsPerEpoch);
  return { slot, targetEpoch: epoch, sourceEpoch: Math.max(0, epoch - 1) };
}

export function isClockBehind(now: number, chain: ChainTime, { blockSlot, targetEpoch }: HighWaterMarks): boolean {
  const latest = floorAt(now, chain);
  return (blockSlot ?? 0) > latest.slot || (targetEpoch ?? 0) > latest.targetEpoch;
}

/** What a jump made now raises a store to; throws when no clock can be believed. */
export type JumpFloor = (highest: HighWaterMarks) => StoreFloor;

/** @throws SignerError slashing_unavailable, from the function: no genesis time is known, or the clock is behind */
export function jumpFloor(chain: ChainTime | undefined, now: () => number): JumpFloor {
  return (highest) => {
    if (chain === undefined) throw new SignerError('slashing_unavailable', { hint: NO_GENESIS_TIME });
    const time = now();
    if (isClockBehind(time, chain, highest)) throw new SignerError('slashing_unavailable', { hint: CLOCK_BEHIND });
    return floorAt(time, chain);
  };
}

export async function jumpToPresent(
  backend: Pick<SlashingBackend, 'highestMarks' | 'jump'>,
  floorOf: JumpFloor,
): Promise<StoreIdentity> {
  return backend.jump(floorOf(await backend.highestMarks()));
}

const NO_GENESIS_TIME =
  'records may have been lost, and the slashing store cannot be raised to the present: set custom_network.genesis_time, ' +
  'or raise it by hand (strongroom slashing jump)';
const CLOCK_BEHIND =
  'records may have been lost, and the clock of this signer is behind what keys have signed: set the clock, ' +
  'or raise the slashing store by hand (strongroom slashing jump)';

export function higherFloor(one: StoreFloor | null, other: StoreFloor): StoreFloor {
  return {
    slot: Math.max(one?.slot ?? 0, other.slot),
    sourceEpoch: Math.max(one?.sourceEpoch ?? 0, other.sourceEpoch),
    targetEpoch: Math.max(one?.targetEpoch ?? 0, other.targetEpoch),
  };
}

export function floorFields({ slot, sourceEpoch, targetEpoch }: StoreFloor) {
  return { slot, source_epoch: sourceEpoch, target_epoch: targetEpoch };
}

export function coversFloor(one: StoreFloor | null, other: StoreFloor): boolean {
  if (one === null) return false;
  return one.slot >= other.slot && one.sourceEpoch >= other.sourceEpoch && one.targetEpoch >= other.targetEpoch;
}

function slotAt(now: number, { genesisTimeSeconds, slotDurationMs }: ChainTime): number {
  return Math.max(0, Math.floor((now - genesisTimeSeconds * 1000) / slotDurationMs));
}
