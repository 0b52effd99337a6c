// The time of the model of fleets: one clock that the world moves, and for each signer the clocks that it reads, which
// stand still while it is frozen. A chain with short epochs, so that an epoch ends every few steps.

import type { Clock } from '../../../common/observe/clock.ts';
import { type ChainTime, FLEET_TOLERANCE } from '../../../signer/slashing/future.ts';
import { floorAt } from '../../../signer/slashing/jump.ts';
import type { StoreFloor } from '../../../signer/slashing/types.ts';

export const CHAIN: ChainTime = {
  genesisTimeSeconds: 0,
  slotDurationMs: 12_000,
  slotsPerEpoch: 4,
  tolerance: FLEET_TOLERANCE,
};
export const EPOCH_MS = CHAIN.slotDurationMs * CHAIN.slotsPerEpoch;
const FIRST_EPOCH = 1_000;

export interface WorldTime {
  now(): number;
  pass(milliseconds: number): void;
  /** The latest that an honest clock may be asked for. */
  latest(): StoreFloor;
}

export function worldTime(): WorldTime {
  let now = FIRST_EPOCH * EPOCH_MS;
  return {
    now: () => now,
    pass(milliseconds) {
      now += milliseconds;
    },
    latest: () => floorAt(now, CHAIN),
  };
}

/** When a process is stopped both clocks go on; on a suspended machine the monotonic one stands still. */
export type Freeze = 'stopped' | 'suspended';

export interface SignerClock extends Clock {
  freeze(kind: Freeze): void;
  thaw(): void;
  /** The wall clock steps: from now on it is off by so much. */
  set(offMs: number): void;
}

export function signerClock(time: WorldTime, startsOffMs: number): SignerClock {
  let behind = 0;
  let offMs = startsOffMs;
  let frozen: { readonly at: number; readonly kind: Freeze } | undefined;
  const passed = () => frozen?.at ?? time.now();
  return {
    now: () => passed() + offMs,
    monotonic: () => passed() - behind,
    set(nowOffMs) {
      offMs = nowOffMs;
    },
    freeze(kind) {
      frozen ??= { at: time.now(), kind };
    },
    thaw() {
      if (frozen?.kind === 'suspended') behind += time.now() - frozen.at;
      frozen = undefined;
    },
  };
}
