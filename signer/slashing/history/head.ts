// The head of a key: what a complete store knows of it besides its entries, and what these must be.

import type { BlockEntry, HistoryPart, KeyHistory, Marks, StoreFloor, VoteEntry } from '../types.ts';

/** The count, and the multiset hash (codes.ts). */
export interface EntrySet {
  readonly count: number;
  readonly digest: Uint8Array;
}

export interface KeyState {
  readonly highest: Marks;
  /** Conditions 2, 4 and 5 of EIP-3076. */
  readonly lowWater: Marks;
  /** Entries below these were pruned, or never kept: one that is there is damage. Null: nothing was forgotten. */
  readonly prunedBelow: Pick<Marks, 'slot' | 'targetEpoch'>;
  readonly blocks: EntrySet;
  readonly attestations: EntrySet;
  readonly tenure: number;
}

export const NO_MARKS: Marks = { slot: null, sourceEpoch: null, targetEpoch: null };
export const MARKS = ['slot', 'sourceEpoch', 'targetEpoch'] as const;

/** Each mark by itself. */
export function marksBy<Mark>(markOf: (mark: keyof Marks) => Mark): Readonly<Record<keyof Marks, Mark>> {
  return { slot: markOf('slot'), sourceEpoch: markOf('sourceEpoch'), targetEpoch: markOf('targetEpoch') };
}

export const NO_HISTORY: KeyHistory = { blocks: [], attestations: [] };
const NO_ENTRIES: EntrySet = { count: 0, digest: new Uint8Array(16) };

export const NEW_KEY: KeyState = {
  highest: NO_MARKS,
  lowWater: NO_MARKS,
  prunedBelow: { slot: null, targetEpoch: null },
  blocks: NO_ENTRIES,
  attestations: NO_ENTRIES,
  tenure: 0,
};

/** The first that is known of each stays. */
export function lowWaterWith(known: Marks, own: Marks): Marks {
  return marksBy((mark) => known[mark] ?? own[mark]);
}

export function hasRecords({ highest, lowWater }: KeyState): boolean {
  return [...Object.values(highest), ...Object.values(lowWater)].some((mark) => mark !== null);
}

/** Of a key's own, and of the floor that its store may have. */
export function higherMarks(one: Marks | null, other: StoreFloor): StoreFloor;
export function higherMarks(one: Marks | null, other: Marks): Marks;
export function higherMarks(one: Marks | null, other: Marks): Marks {
  return one === null ? other : marksBy((mark) => higher(one[mark], other[mark]));
}

/** Null is lower than every number. */
export function higher<Other extends number | null>(mark: number | null, other: Other): number | Other {
  if (mark === null) return other;
  return other === null || mark > other ? mark : other;
}

export function highestOf({ leftOut, ...history }: HistoryPart): Marks {
  return higherMarks(
    leftOut ?? NO_MARKS,
    marksIn(history, (marks) => marks.reduce<number | null>(higher, null)),
  );
}

export function lowestOf(history: KeyHistory): Marks {
  return marksIn(history, (marks) => (marks.length === 0 ? null : marks.reduce((one, other) => Math.min(one, other))));
}

function marksIn({ blocks, attestations }: KeyHistory, markOf: (marks: readonly number[]) => number | null): Marks {
  return {
    slot: markOf(blocks.map(slotOf)),
    sourceEpoch: markOf(attestations.map(({ sourceEpoch }) => sourceEpoch)),
    targetEpoch: markOf(attestations.map(targetOf)),
  };
}

export const slotOf = ({ slot }: BlockEntry): number => slot;
export const targetOf = ({ targetEpoch }: VoteEntry): number => targetEpoch;
