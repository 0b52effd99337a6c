// Merges what a file says of a key into what is recorded of it, without I/O. Nothing becomes weaker: an entry that
// contradicts another takes its root away, so that both are refused, an entry that would have been refused comes without
// its root, and low-water marks are never lowered.

import { importedBlock, importedVote } from '../history/carried-entries.ts';
import { type AttestationEntry, type BlockEntry, highest, type ValidatorState } from './rows.ts';

export interface KeyHistory {
  readonly blocks: readonly BlockEntry[];
  readonly attestations: readonly AttestationEntry[];
}

export interface MergedKey {
  readonly state: ValidatorState;
  /** Entries that are new. */
  readonly added: KeyHistory;
  /** Entries that lose their root. */
  readonly contradicted: KeyHistory;
  readonly alreadyPresent: number;
  readonly conflicts: number;
}

export function mergeKey(state: ValidatorState, recorded: KeyHistory, imported: KeyHistory): MergedKey {
  const blocks = mergeEntries(recorded.blocks, imported.blocks, ({ slot }) => `${slot}`);
  const votes = mergeEntries(
    recorded.attestations,
    imported.attestations,
    ({ sourceEpoch, targetEpoch }) => `${sourceEpoch} ${targetEpoch}`,
  );
  const slashable = slashableVotes([...recorded.attestations, ...imported.attestations]);
  const slashableImported = imported.attestations.filter((vote) => slashable(vote) || votes.conflicting.has(vote));
  const added = {
    blocks: blocks.added.map((block) => importedBlock(block, state.lowWater)),
    attestations: votes.added.map((vote) =>
      slashable(vote) ? { ...vote, signingRoot: null } : importedVote(vote, state.lowWater),
    ),
  };
  return {
    state: stateWith(state, added.blocks, added.attestations),
    added,
    contradicted: { blocks: blocks.contradicted, attestations: votes.contradicted },
    alreadyPresent: blocks.alreadyPresent + votes.alreadyPresent,
    conflicts: blocks.conflicting.size + slashableImported.length,
  };
}

interface Entry {
  readonly signingRoot: Uint8Array | null;
}

interface MergedEntries<Kind> {
  readonly added: Kind[];
  readonly contradicted: Kind[];
  readonly alreadyPresent: number;
  /** Imported entries whose place holds another root. */
  readonly conflicting: ReadonlySet<Kind>;
}

function mergeEntries<Kind extends Entry>(
  recorded: readonly Kind[],
  imported: readonly Kind[],
  placeOf: (entry: Kind) => string,
): MergedEntries<Kind> {
  const before = new Map(recorded.map((entry) => [placeOf(entry), entry]));
  const after = new Map(before);
  const conflicting = new Set<Kind>();
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
  const changed = [...after].filter(([place, entry]) => before.get(place) !== entry);
  return {
    added: changed.filter(([place]) => !before.has(place)).map(([, entry]) => entry),
    contradicted: changed.filter(([place]) => before.has(place)).map(([, entry]) => entry),
    alreadyPresent,
    conflicting,
  };
}

function stateWith(
  state: ValidatorState,
  blocks: readonly BlockEntry[],
  votes: readonly AttestationEntry[],
): ValidatorState {
  const slots = blocks.map(({ slot }) => slot);
  const sources = votes.map(({ sourceEpoch }) => sourceEpoch);
  const targets = votes.map(({ targetEpoch }) => targetEpoch);
  return {
    highest: {
      blockSlot: highest([state.highest.blockSlot, ...slots]),
      sourceEpoch: highest([state.highest.sourceEpoch, ...sources]),
      targetEpoch: highest([state.highest.targetEpoch, ...targets]),
    },
    // A mark that is set stays: what was refused below it is refused whatever older entries turn up.
    lowWater: {
      slot: state.lowWater.slot ?? lowest(slots),
      sourceEpoch: state.lowWater.sourceEpoch ?? lowest(sources),
      targetEpoch: state.lowWater.targetEpoch ?? lowest(targets),
    },
    blocks: state.blocks + blocks.length,
    attestations: state.attestations + votes.length,
  };
}

/** Condition 3 over a whole history in one pass each way: who votes twice for a target, surrounds, or is surrounded. */
function slashableVotes(votes: readonly AttestationEntry[]): (vote: AttestationEntry) => boolean {
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

function sameRoot(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0;
}

function lowest(values: readonly number[]): number | null {
  return values.reduce<number | null>((low, value) => (low === null || value < low ? value : low), null);
}
