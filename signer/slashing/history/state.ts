// The head of a key: what a complete store knows of it besides its entries, and what these must be.

import type { HighWaterMarks, StoreFloor } from '../types.ts';

/** Conditions 2, 4 and 5 of EIP-3076; null while a key has no entry of the kind. */
export interface LowWaterMarks {
  readonly slot: number | null;
  readonly sourceEpoch: number | null;
  readonly targetEpoch: number | null;
}

/** The count, and the multiset hash (codes.ts). */
export interface EntrySet {
  readonly count: number;
  readonly digest: Uint8Array;
}

/** Entries below these were pruned, or never kept: one that is there is damage. Null: nothing was forgotten. */
export interface PrunedBelow {
  readonly slot: number | null;
  readonly targetEpoch: number | null;
}

export interface KeyState {
  readonly highest: HighWaterMarks;
  readonly lowWater: LowWaterMarks;
  readonly prunedBelow: PrunedBelow;
  readonly blocks: EntrySet;
  readonly attestations: EntrySet;
  readonly tenure: number;
}

export interface BlockEntry {
  readonly slot: number;
  /** 32 bytes; null refuses everything at the slot. */
  readonly signingRoot: Uint8Array | null;
}

export interface VoteEntry {
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
  readonly signingRoot: Uint8Array | null;
}

export interface KeyHistory {
  readonly blocks: readonly BlockEntry[];
  readonly attestations: readonly VoteEntry[];
}

export const NO_MARKS: HighWaterMarks = { blockSlot: null, sourceEpoch: null, targetEpoch: null };
const NO_LOW_WATER: LowWaterMarks = { slot: null, sourceEpoch: null, targetEpoch: null };
const NO_ENTRIES: EntrySet = { count: 0, digest: new Uint8Array(16) };

export const NEW_KEY: KeyState = {
  highest: NO_MARKS,
  lowWater: NO_LOW_WATER,
  prunedBelow: { slot: null, targetEpoch: null },
  blocks: NO_ENTRIES,
  attestations: NO_ENTRIES,
  tenure: 0,
};

/** Then a file of the key is merged as minimal (merge.ts). */
export function hasRecords({ highest, lowWater }: KeyState): boolean {
  return [...Object.values(highest), ...Object.values(lowWater)].some((mark) => mark !== null);
}

/** Of the key, and of the floor under all keys of the store. */
export function effectiveLowWater({ lowWater }: Pick<KeyState, 'lowWater'>, floor: StoreFloor | null): LowWaterMarks {
  if (floor === null) return lowWater;
  return {
    slot: higher(lowWater.slot, floor.slot),
    sourceEpoch: higher(lowWater.sourceEpoch, floor.sourceEpoch),
    targetEpoch: higher(lowWater.targetEpoch, floor.targetEpoch),
  };
}

/** What the key signed, and everything under the floor. */
export function effectiveHighest({ highest }: Pick<KeyState, 'highest'>, floor: StoreFloor | null): HighWaterMarks {
  if (floor === null) return highest;
  return {
    blockSlot: higher(highest.blockSlot, floor.slot),
    sourceEpoch: higher(highest.sourceEpoch, floor.sourceEpoch),
    targetEpoch: higher(highest.targetEpoch, floor.targetEpoch),
  };
}

export function higherMarks(one: HighWaterMarks, other: HighWaterMarks): HighWaterMarks {
  return {
    blockSlot: higher(one.blockSlot, other.blockSlot),
    sourceEpoch: higher(one.sourceEpoch, other.sourceEpoch),
    targetEpoch: higher(one.targetEpoch, other.targetEpoch),
  };
}

/** Null is lower than every number. */
export function higher<Other extends number | null>(mark: number | null, other: Other): number | Other {
  if (mark === null) return other;
  return other === null || mark > other ? mark : other;
}

export function lowest<Member extends string>(
  entries: readonly { readonly [M in Member]: number }[],
  member: Member,
): number | null {
  return entries.reduce<number | null>((least, entry) => Math.min(least ?? entry[member], entry[member]), null);
}
