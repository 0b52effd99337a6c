// A key of a decided import on its way through the steps: read, then merged ahead, then written. What was computed
// ahead counts only while what it rests on is unchanged; whoever writes looks again.

import type { MergedKey } from '../../history/merge.ts';
import type { KeyHistory, KeyState } from '../../history/state.ts';
import type { ReducedHistory } from '../../interchange/reduce.ts';
import type { StoreFloor } from '../../types.ts';
import type { Head } from '../tables/heads.ts';

/** One key of a decided import, read and shown to be whole; nothing else changes its entries while it is held. */
export interface PreparedKey {
  readonly publicKey: Uint8Array;
  readonly imported: ReducedHistory;
  readonly head: Head | undefined;
  readonly recorded: KeyHistory;
}

/** What a merge rests on beside what was read: while it stays, so does the result. */
export interface MergeBasis {
  readonly state: KeyState;
  readonly floor: StoreFloor | null;
}

export interface MergedAhead extends PreparedKey {
  readonly basis: MergeBasis;
  readonly merged: MergedKey;
}

/** Entries that merging the key looks at, and one for the key. */
export function sizeOf({ imported, recorded }: PreparedKey): number {
  const lists = [imported.blocks, imported.attestations, recorded.blocks, recorded.attestations];
  return lists.reduce((sum, { length }) => sum + length, 1);
}

export function haveSameEntries(one: KeyState, other: KeyState): boolean {
  return (['blocks', 'attestations'] as const).every(
    (kind) => one[kind].count === other[kind].count && Buffer.compare(one[kind].digest, other[kind].digest) === 0,
  );
}
