// Finds slashable pairs among released signatures. Knows nothing of the implementation: only what was signed.

export interface SignedVote {
  readonly publicKey: string;
  readonly source: number;
  readonly target: number;
  /** What tells two votes apart: for example the head. */
  readonly data: string;
}

export interface SlashablePair {
  readonly kind: 'double vote' | 'surround';
  readonly votes: readonly [SignedVote, SignedVote];
}

/** The first slashable pair, or undefined. */
export function findSlashablePair(votes: readonly SignedVote[]): SlashablePair | undefined {
  for (const [index, one] of votes.entries()) {
    for (const other of votes.slice(index + 1)) {
      const kind = one.publicKey === other.publicKey ? slashable(one, other) : undefined;
      if (kind !== undefined) return { kind, votes: [one, other] };
    }
  }
  return undefined;
}

function slashable(one: SignedVote, other: SignedVote): SlashablePair['kind'] | undefined {
  const same = one.source === other.source && one.target === other.target && one.data === other.data;
  if (same) return undefined;
  if (one.target === other.target) return 'double vote';
  const surrounds = (a: SignedVote, b: SignedVote): boolean => a.source < b.source && b.target < a.target;
  return surrounds(one, other) || surrounds(other, one) ? 'surround' : undefined;
}
