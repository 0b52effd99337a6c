// Merges the entries of a file for a key into the record of this key. No protection becomes weaker: when two entries
// contradict each other, the stored one has no root, so that both messages are refused; an entry that would have been
// refused is stored without its root; low-water marks are never lowered.
//
// When the store has records of a key, it merges the key as minimal: the file may lack what the key signed elsewhere,
// so everything up to its marks is refused. EIP-3076's complete strategy is for a file that is known to list all.

import type {
  BlockEntry,
  ConflictingEntry,
  HistoryPart,
  ImportConflict,
  KeyHistory,
  Marks,
  MergeStrategy,
  PublicKeyHex,
  StoreFloor,
  VoteEntry,
} from '../types.ts';
import { BLOCKS, type Coded, type EntryKind, type HistoryCodes, VOTES, withEntry, withoutEntry } from './codes.ts';
import { hasRecords, higherMarks, highestOf, type KeyState, lowestOf, lowWaterWith, NO_MARKS } from './head.ts';
import { forget, type Horizon, horizonOf } from './prune.ts';

export interface CodedEntries {
  readonly blocks: readonly Coded<BlockEntry>[];
  readonly attestations: readonly Coded<VoteEntry>[];
}

export interface MergedKey {
  readonly state: KeyState;
  readonly added: CodedEntries;
  readonly contradicted: CodedEntries;
  readonly alreadyPresent: number;
  readonly conflicts: number;
  readonly conflicting: readonly ConflictingEntry[];
}

interface KeyToMerge {
  /** 48 bytes. */
  readonly publicKey: Uint8Array;
  readonly state: KeyState;
  readonly recorded: KeyHistory;
  /** What it refuses stays refused, also when a file says that it was signed. */
  readonly floor: StoreFloor | null;
}

/** `imported`: everything that one import says of the key. */
export function mergeKey(
  key: KeyToMerge,
  imported: HistoryPart,
  strategy: MergeStrategy,
  codes: HistoryCodes,
): MergedKey {
  const { state, recorded, floor } = key;
  const blocks = mergeEntries(BLOCKS, recorded.blocks, imported.blocks);
  const votes = mergeEntries(VOTES, recorded.attestations, imported.attestations);
  const isSlashable = rivalsOf([...recorded.attestations, ...imported.attestations]);
  const conflictingVotes = imported.attestations.filter((vote) => isSlashable(vote) || votes.conflicting.has(vote));
  const said = highestOf(imported);
  // A store holds an entry at each highest mark; up to what the reader left out the low-water marks refuse everything.
  const { leftOut = NO_MARKS, ...listed } = imported;
  const highest = higherMarks(state.highest, highestOf(listed));
  const { prunedBelow } = state;
  const { slot, targetEpoch } = horizonOf(highest);
  const horizon = {
    slot: Math.max(slot, prunedBelow.slot ?? 0),
    targetEpoch: Math.max(targetEpoch, prunedBelow.targetEpoch ?? 0),
  };
  const [keptBlocks, leftBlocks] = parted(BLOCKS, blocks.added, horizon);
  const [keptVotes, leftVotes] = parted(VOTES, votes.added, horizon);

  const marks = forget(
    // What was refused stays so, whatever older entries turn up.
    { lowWater: lowWaterWith(state.lowWater, lowestOf(imported)), prunedBelow },
    highestOf({ blocks: leftBlocks, attestations: leftVotes, leftOut: imported.leftOut }),
    lowestOf({
      blocks: [...recorded.blocks, ...keptBlocks],
      attestations: [...recorded.attestations, ...keptVotes],
    }),
  );
  const isMinimal = strategy === 'minimal' || (strategy === 'by_key' && hasRecords(state));
  // What the reader left out may contradict any entry up to it: that has no root either, whether imported or recorded.
  const left = higherMarks(NO_MARKS, leftOut);
  const before = higherMarks(higherMarks(floor, state.lowWater), leftOut);
  const isRival = rivalsOf(imported.attestations);
  const ofBlocks = changesOf(BLOCKS, key, codes, {
    added: keptBlocks.map((block) => (isBlockUpTo(before, block) ? withoutRoot(block) : block)),
    contradicted: contradictedOf(recorded.blocks, blocks, (block) => isBlockUpTo(left, block)),
  });
  const ofVotes = changesOf(VOTES, key, codes, {
    added: keptVotes.map((vote) => (isSlashable(vote) || isVoteUpTo(before, vote) ? withoutRoot(vote) : vote)),
    contradicted: contradictedOf(recorded.attestations, votes, (vote) => isRival(vote) || isVoteUpTo(left, vote)),
  });
  return {
    state: {
      highest,
      // Whatever the file does not list below its highest entries is refused.
      lowWater: isMinimal ? higherMarks(marks.lowWater, said) : marks.lowWater,
      prunedBelow: marks.prunedBelow,
      blocks: ofBlocks.set,
      attestations: ofVotes.set,
      tenure: state.tenure,
    },
    added: { blocks: ofBlocks.added, attestations: ofVotes.added },
    contradicted: { blocks: ofBlocks.contradicted, attestations: ofVotes.contradicted },
    alreadyPresent: blocks.alreadyPresent + votes.alreadyPresent,
    conflicts: blocks.conflicting.size + conflictingVotes.length,
    conflicting: [
      ...[...blocks.conflicting].map(({ slot }) => ({ slot })),
      ...conflictingVotes.map(({ sourceEpoch, targetEpoch }) => ({ sourceEpoch, targetEpoch })),
    ].slice(0, MAX_LISTED_CONFLICTS),
  };
}

export function codedHistory(codes: HistoryCodes, publicKey: Uint8Array, history: KeyHistory): CodedEntries {
  return {
    blocks: history.blocks.map((block) => ({ ...block, ...codes.entry(BLOCKS, publicKey, block) })),
    attestations: history.attestations.map((vote) => ({ ...vote, ...codes.entry(VOTES, publicKey, vote) })),
  };
}

/** The store refused such a block: with its root an imported one would be signable again. The same holds of votes. */
function isBlockUpTo({ slot }: Marks, entry: BlockEntry): boolean {
  return slot !== null && entry.slot <= slot;
}

function isVoteUpTo({ sourceEpoch, targetEpoch }: Marks, entry: VoteEntry): boolean {
  return (
    (sourceEpoch !== null && entry.sourceEpoch < sourceEpoch) ||
    (targetEpoch !== null && entry.targetEpoch <= targetEpoch)
  );
}

function withoutRoot<Entry extends BlockEntry | VoteEntry>(entry: Entry): Entry {
  return { ...entry, signingRoot: null };
}

function changesOf<Entry extends BlockEntry | VoteEntry>(
  kind: EntryKind<Entry>,
  { publicKey, state }: KeyToMerge,
  codes: HistoryCodes,
  changes: Pick<ReturnType<typeof mergeEntries<Entry>>, 'added' | 'contradicted'>,
) {
  const coded = (entry: Entry): Coded<Entry> => ({ ...entry, ...codes.entry(kind, publicKey, entry) });
  const added = changes.added.map(coded);
  const contradicted = changes.contradicted.map(({ after }) => coded(after));
  const removed = changes.contradicted.map(({ before }) => codes.entry(kind, publicKey, before));
  const set = [...contradicted, ...added].reduce(withEntry, removed.reduce(withoutEntry, state[kind.name]));
  return { added, contradicted, set };
}

function parted<Entry extends BlockEntry | VoteEntry>(
  { markOf, mark }: EntryKind<Entry>,
  entries: readonly Entry[],
  horizon: Horizon,
): [kept: Entry[], left: Entry[]] {
  const [kept, left]: [Entry[], Entry[]] = [[], []];
  for (const entry of entries) (markOf(entry) >= horizon[mark] ? kept : left).push(entry);
  return [kept, left];
}

interface Contradicted<Entry> {
  readonly before: Entry;
  readonly after: Entry;
}

/** Recorded entries that a file contradicts are no repeats any more: they may have been recorded and never signed. */
function contradictedOf<Entry extends BlockEntry | VoteEntry>(
  recorded: readonly Entry[],
  { contradicted }: Pick<ReturnType<typeof mergeEntries<Entry>>, 'contradicted'>,
  isContradicted: (entry: Entry) => boolean,
): Contradicted<Entry>[] {
  const done = new Set(contradicted.map(({ before }) => before));
  const others = recorded.filter((entry) => entry.signingRoot !== null && !done.has(entry) && isContradicted(entry));
  return [...contradicted, ...others.map((before) => ({ before, after: withoutRoot(before) }))];
}

function mergeEntries<Entry extends BlockEntry | VoteEntry>(
  kind: EntryKind<Entry>,
  recorded: readonly Entry[],
  imported: readonly Entry[],
) {
  const placeOf = (entry: Entry): string => kind.placeOf(entry).join(' ');
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

/**
 * Finds votes that condition 3 of EIP-3076 forbids together with one of these: another vote for its target, or a vote
 * that surrounds it or is surrounded by it.
 */
function rivalsOf(votes: readonly VoteEntry[]): (vote: VoteEntry) => boolean {
  const sourcesOf = new Map<number, Set<number>>();
  for (const { sourceEpoch, targetEpoch } of votes)
    sourcesOf.set(targetEpoch, (sourcesOf.get(targetEpoch) ?? new Set()).add(sourceEpoch));
  const bySource = votes.toSorted((one, other) => one.sourceEpoch - other.sourceEpoch);
  /** Of so many with the lowest sources, the highest target; of so many with the highest sources, the lowest. */
  const [highest, lowest] = [[Number.NEGATIVE_INFINITY], [Number.POSITIVE_INFINITY]];
  for (const { targetEpoch } of bySource) highest.push(Math.max(highest.at(-1) as number, targetEpoch));
  for (const { targetEpoch } of bySource.toReversed()) lowest.push(Math.min(lowest.at(-1) as number, targetEpoch));
  return ({ sourceEpoch, targetEpoch }) => {
    const sources = sourcesOf.get(targetEpoch);
    if (sources !== undefined && (sources.size > 1 || !sources.has(sourceEpoch))) return true;
    const below = countBelow(bySource, sourceEpoch);
    const above = bySource.length - countBelow(bySource, sourceEpoch + 1);
    return (highest[below] as number) > targetEpoch || (lowest[above] as number) < targetEpoch;
  };
}

/** @param bySource in ascending order of sources @returns how many have a lower one */
function countBelow(bySource: readonly VoteEntry[], source: number): number {
  let [from, to] = [0, bySource.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((bySource[middle] as VoteEntry).sourceEpoch < source) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** A person does not go through more by hand. */
const MAX_LISTED_CONFLICTS = 100;

export function listConflicts(
  listed: readonly ImportConflict[],
  publicKey: PublicKeyHex,
  entries: readonly ConflictingEntry[],
): readonly ImportConflict[] {
  if (entries.length === 0) return listed;
  return [...listed, ...entries.map((entry) => ({ publicKey, ...entry }))].slice(0, MAX_LISTED_CONFLICTS);
}
