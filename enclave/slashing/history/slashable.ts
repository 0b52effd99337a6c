// Condition 3 of EIP-3076 over all votes of a key at once, for imports: it finds votes that are double, surround
// another vote, or are surrounded. Pure, in one pass in each direction.

import type { VoteEntry } from './state.ts';

/** Whether a vote of the list is slashable against another of the list. */
export function slashableVotes(votes: readonly VoteEntry[]): (vote: VoteEntry) => boolean {
  const sourcesOf = new Map<number, number>();
  const twice = new Set<number>();
  for (const { sourceEpoch, targetEpoch } of votes) {
    if ((sourcesOf.get(targetEpoch) ?? sourceEpoch) !== sourceEpoch) twice.add(targetEpoch);
    sourcesOf.set(targetEpoch, sourceEpoch);
  }
  const targets = new Map<number, { lowest: number; highest: number }>();
  for (const { sourceEpoch, targetEpoch } of votes) {
    const known = targets.get(sourceEpoch) ?? { lowest: targetEpoch, highest: targetEpoch };
    known.lowest = Math.min(known.lowest, targetEpoch);
    known.highest = Math.max(known.highest, targetEpoch);
    targets.set(sourceEpoch, known);
  }
  const sources = [...targets.entries()].toSorted(([one], [other]) => one - other);
  const highestBefore = new Map<number, number>();
  let most = Number.NEGATIVE_INFINITY;
  for (const [source, range] of sources) {
    highestBefore.set(source, most);
    most = Math.max(most, range.highest);
  }
  const lowestAfter = new Map<number, number>();
  let least = Number.POSITIVE_INFINITY;
  for (const [source, range] of sources.toReversed()) {
    lowestAfter.set(source, least);
    least = Math.min(least, range.lowest);
  }
  return ({ sourceEpoch, targetEpoch }) =>
    twice.has(targetEpoch) ||
    (highestBefore.get(sourceEpoch) ?? Number.NEGATIVE_INFINITY) > targetEpoch ||
    (lowestAfter.get(sourceEpoch) ?? Number.POSITIVE_INFINITY) < targetEpoch;
}
