// Compares the entries of a file with the recorded entries for the same slot or target. It finds which entries are new,
// which are recorded already, and which contradict each other and so lose their roots. Pure.

import type { VoteEntry } from './state.ts';

export interface Contradicted<Entry> {
  readonly before: Entry;
  readonly after: Entry;
}

/**
 * Recorded votes for whose target a file has a vote from another source: neither is a repeat any more, also when one of
 * the two is forgotten before the other. Those that lost their root already are not named again.
 */
export function doubleVotesOf(
  recorded: readonly VoteEntry[],
  imported: readonly VoteEntry[],
  contradicted: readonly Contradicted<VoteEntry>[],
): Contradicted<VoteEntry>[] {
  const sourcesOf = new Map<number, Set<number>>();
  for (const { sourceEpoch, targetEpoch } of imported) {
    sourcesOf.set(targetEpoch, (sourcesOf.get(targetEpoch) ?? new Set()).add(sourceEpoch));
  }
  const done = new Set(contradicted.map(({ before }) => before));
  return recorded
    .filter((vote) => {
      const sources = sourcesOf.get(vote.targetEpoch);
      const hasRival = sources !== undefined && (sources.size > 1 || !sources.has(vote.sourceEpoch));
      return hasRival && vote.signingRoot !== null && !done.has(vote);
    })
    .map((before) => ({ before, after: { ...before, signingRoot: null } }));
}

export interface MergedEntries<Entry> {
  readonly added: readonly Entry[];
  readonly contradicted: readonly Contradicted<Entry>[];
  readonly alreadyPresent: number;
  /** Imported entries whose place holds another root. */
  readonly conflicting: ReadonlySet<Entry>;
}

export function mergeEntries<Entry extends { readonly signingRoot: Uint8Array | null }>(
  recorded: readonly Entry[],
  imported: readonly Entry[],
  placeOf: (entry: Entry) => string,
): MergedEntries<Entry> {
  const before = new Map(recorded.map((entry) => [placeOf(entry), entry]));
  const after = new Map(before);
  const conflicting = new Set<Entry>();
  let alreadyPresent = 0;
  for (const entry of imported) {
    const place = placeOf(entry);
    const there = after.get(place);
    if (there === undefined) {
      after.set(place, entry);
    } else if (sameRoot(there.signingRoot, entry.signingRoot)) {
      alreadyPresent += 1;
    } else if (there.signingRoot !== null) {
      // EIP-3076: an entry without a root may be any message, so nothing at its place is a repeat any more.
      after.set(place, { ...there, signingRoot: null });
      if (entry.signingRoot !== null) conflicting.add(entry);
    }
  }
  const added: Entry[] = [];
  const contradicted: Contradicted<Entry>[] = [];
  for (const [place, entry] of after) {
    const earlier = before.get(place);
    if (earlier === undefined) added.push(entry);
    else if (earlier !== entry) contradicted.push({ before: earlier, after: entry });
  }
  return { added, contradicted, alreadyPresent, conflicting };
}

function sameRoot(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0;
}
