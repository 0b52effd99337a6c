// Merges the entries of a file for a key into the record of this key, without I/O, once for every complete store. No
// protection becomes weaker. When two entries contradict each other, the stored entry has no root, so that both
// messages are refused. An entry that would have been refused is stored without its root. Low-water marks are never
// lowered. Entries far behind the highest ones are not stored; the marks refuse them (prune.ts).
//
// When the store has no records of a key, it keeps the entries of the file. When it has records, it merges the key as
// minimal: the file may be pruned, or may lack what the key signed elsewhere, so everything up to the file's marks is
// refused. EIP-3076's complete strategy is only for a caller that knows that the file lists everything.

import { MAX_LISTED_CONFLICTS } from '../conflicts.ts';
import type { ConflictingEntry, HighWaterMarks, MergeStrategy, StoreFloor, ValidatorHistory } from '../types.ts';
import { type EntryCodes, type HistoryCodes, withEntry, withoutEntry } from './codes.ts';
import { doubleVotesOf, mergeEntries } from './contradictions.ts';
import { higher } from './higher.ts';
import { forgetBlocks, forgetVotes, type Horizon, horizonOf } from './prune.ts';
import { NO_MARKS } from './rules.ts';
import { slashableVotes } from './slashable.ts';
import {
  type BlockEntry,
  effectiveLowWater,
  hasRecords,
  higherMarks,
  type KeyHistory,
  type KeyState,
  type LowWaterMarks,
  type VoteEntry,
} from './state.ts';

export type Coded<Entry> = Entry & EntryCodes;

export interface MergedKey {
  readonly state: KeyState;
  /** Entries to insert. */
  readonly added: { readonly blocks: readonly Coded<BlockEntry>[]; readonly attestations: readonly Coded<VoteEntry>[] };
  /** Recorded entries that lose their root: to be replaced by these. */
  readonly contradicted: MergedKey['added'];
  readonly alreadyPresent: number;
  readonly conflicts: number;
  /** Which they are, up to MAX_LISTED_CONFLICTS. */
  readonly conflicting: readonly ConflictingEntry[];
}

export interface KeyToMerge {
  /** 48 bytes. */
  readonly publicKey: Uint8Array;
  readonly state: KeyState;
  /** The whole history, shown to be whole. */
  readonly recorded: KeyHistory;
  /** The store's floor: what it refuses stays refused, also when a file says that it was signed. */
  readonly floor: StoreFloor | null;
}

/** `imported`: everything that one import says of the key. */
export function mergeKey(
  { publicKey, state, recorded, floor }: KeyToMerge,
  imported: Omit<ValidatorHistory, 'publicKey'>,
  strategy: MergeStrategy,
  codes: HistoryCodes,
): MergedKey {
  const blocks = mergeEntries(recorded.blocks, imported.blocks, ({ slot }) => `${slot}`);
  const votes = mergeEntries(
    recorded.attestations,
    imported.attestations,
    ({ sourceEpoch, targetEpoch }) => `${sourceEpoch} ${targetEpoch}`,
  );
  const isSlashable = slashableVotes([...recorded.attestations, ...imported.attestations]);
  const conflictingVotes = imported.attestations.filter((vote) => isSlashable(vote) || votes.conflicting.has(vote));
  const rivals = doubleVotesOf(recorded.attestations, imported.attestations, votes.contradicted);
  const said = highestOf(imported);
  const highest = higherMarks(state.highest, said);
  const horizon = importHorizon(state, highest);
  const [keptBlocks, leftBlocks] = parted(blocks.added, ({ slot }) => slot >= horizon.slot);
  const [keptVotes, leftVotes] = parted(votes.added, ({ targetEpoch }) => targetEpoch >= horizon.targetEpoch);

  const marks = marksAfter({ state, highest }, recorded, imported, { keptBlocks, leftBlocks, keptVotes, leftVotes });
  const isMinimal = strategy === 'minimal' || (strategy === 'by_key' && hasRecords(state));
  // What was left out may contradict what lies up to it: that has no root either.
  const before = raisedTo(effectiveLowWater(state, floor), imported.leftOut ?? NO_MARKS);
  const added = {
    blocks: keptBlocks.map((block) => coded(importedBlock(block, before), codes.block, publicKey)),
    attestations: keptVotes.map((vote) => {
      const entry = isSlashable(vote) ? { ...vote, signingRoot: null } : importedVote(vote, before);
      return coded(entry, codes.attestation, publicKey);
    }),
  };
  const contradicted = {
    blocks: blocks.contradicted.map(({ after }) => coded(after, codes.block, publicKey)),
    attestations: [...votes.contradicted, ...rivals].map(({ after }) => coded(after, codes.attestation, publicKey)),
  };
  const replaced = {
    blocks: blocks.contradicted.map(({ before }) => codes.block(publicKey, before)),
    attestations: [...votes.contradicted, ...rivals].map(({ before }) => codes.attestation(publicKey, before)),
  };
  return {
    state: {
      highest,
      lowWater: isMinimal ? raisedTo(marks.lowWater, said) : marks.lowWater,
      prunedBelow: marks.prunedBelow,
      blocks: changedSet(state.blocks, replaced.blocks, [...contradicted.blocks, ...added.blocks]),
      attestations: changedSet(state.attestations, replaced.attestations, [
        ...contradicted.attestations,
        ...added.attestations,
      ]),
      isRetired: state.isRetired,
    },
    added,
    contradicted,
    alreadyPresent: blocks.alreadyPresent + votes.alreadyPresent,
    conflicts: blocks.conflicting.size + conflictingVotes.length,
    conflicting: [
      ...[...blocks.conflicting].map(({ slot }) => ({ slot })),
      ...conflictingVotes.map(({ sourceEpoch, targetEpoch }) => ({ sourceEpoch, targetEpoch })),
    ].slice(0, MAX_LISTED_CONFLICTS),
  };
}

/** The highest slot and epochs that a file says of a key, those of entries that its reader left out among them. */
function highestOf({ blocks, attestations, leftOut }: Omit<ValidatorHistory, 'publicKey'>): HighWaterMarks {
  return {
    blockSlot: blocks.reduce((most: number | null, { slot }) => higher(most, slot), leftOut?.blockSlot ?? null),
    sourceEpoch: attestations.reduce(
      (most: number | null, { sourceEpoch }) => higher(most, sourceEpoch),
      leftOut?.sourceEpoch ?? null,
    ),
    targetEpoch: attestations.reduce(
      (most: number | null, { targetEpoch }) => higher(most, targetEpoch),
      leftOut?.targetEpoch ?? null,
    ),
  };
}

/** Entries below are not kept: they would be pruned next, or were pruned before. */
function importHorizon({ prunedBelow }: KeyState, highest: HighWaterMarks): Horizon {
  const horizon = horizonOf(highest);
  return {
    slot: Math.max(horizon.slot, prunedBelow.slot ?? 0),
    targetEpoch: Math.max(horizon.targetEpoch, prunedBelow.targetEpoch ?? 0),
  };
}

interface PartedEntries {
  readonly keptBlocks: readonly BlockEntry[];
  readonly leftBlocks: readonly BlockEntry[];
  readonly keptVotes: readonly VoteEntry[];
  readonly leftVotes: readonly VoteEntry[];
}

function marksAfter(
  { state }: { readonly state: KeyState; readonly highest: HighWaterMarks },
  recorded: KeyHistory,
  { blocks, attestations, leftOut }: Omit<ValidatorHistory, 'publicKey'>,
  { keptBlocks, leftBlocks, keptVotes, leftVotes }: PartedEntries,
): Pick<KeyState, 'lowWater' | 'prunedBelow'> {
  // A mark that is set stays: what was refused below it is refused whatever older entries turn up.
  const lowWater: LowWaterMarks = {
    slot: state.lowWater.slot ?? lowest(blocks.map(({ slot }) => slot)),
    sourceEpoch: state.lowWater.sourceEpoch ?? lowest(attestations.map(({ sourceEpoch }) => sourceEpoch)),
    targetEpoch: state.lowWater.targetEpoch ?? lowest(attestations.map(({ targetEpoch }) => targetEpoch)),
  };
  const kept = [...recorded.blocks, ...keptBlocks].map(({ slot }) => slot);
  const keptAttestations = [...recorded.attestations, ...keptVotes];
  const leftSlot = highestOf({ blocks: leftBlocks, attestations: [], leftOut }).blockSlot;
  const left = highestOf({ blocks: [], attestations: leftVotes, leftOut });
  const leftEpochs =
    left.sourceEpoch === null || left.targetEpoch === null
      ? null
      : { sourceEpoch: left.sourceEpoch, targetEpoch: left.targetEpoch };
  const marks = forgetBlocks({ lowWater, prunedBelow: state.prunedBelow }, leftSlot, lowest(kept) ?? leftSlot ?? 0);
  return forgetVotes(marks, leftEpochs, {
    sourceEpoch: lowest(keptAttestations.map(({ sourceEpoch }) => sourceEpoch)) ?? left.sourceEpoch ?? 0,
    targetEpoch: lowest(keptAttestations.map(({ targetEpoch }) => targetEpoch)) ?? left.targetEpoch ?? 0,
  });
}

/** Whatever a file does not list below its highest entries is refused. */
function raisedTo(lowWater: LowWaterMarks, said: HighWaterMarks): LowWaterMarks {
  return {
    slot: higher(lowWater.slot, said.blockSlot),
    sourceEpoch: higher(lowWater.sourceEpoch, said.sourceEpoch),
    targetEpoch: higher(lowWater.targetEpoch, said.targetEpoch),
  };
}

/**
 * A block that a file adds to a key with these marks (those before the import). At or below the mark every block was
 * refused, so it comes without its root: with it the block would be a repeat, and signable again.
 */
function importedBlock(entry: BlockEntry, { slot }: LowWaterMarks): BlockEntry {
  return slot !== null && entry.slot <= slot ? { ...entry, signingRoot: null } : entry;
}

/** The same for a vote. */
function importedVote(entry: VoteEntry, { sourceEpoch, targetEpoch }: LowWaterMarks): VoteEntry {
  const isBelow =
    (sourceEpoch !== null && entry.sourceEpoch < sourceEpoch) ||
    (targetEpoch !== null && entry.targetEpoch <= targetEpoch);
  return isBelow ? { ...entry, signingRoot: null } : entry;
}

function changedSet(set: KeyState['blocks'], removed: readonly EntryCodes[], added: readonly EntryCodes[]) {
  return added.reduce(withEntry, removed.reduce(withoutEntry, set));
}

function coded<Entry>(
  entry: Entry,
  codesOf: (publicKey: Uint8Array, entry: Entry) => EntryCodes,
  publicKey: Uint8Array,
): Coded<Entry> {
  return { ...entry, ...codesOf(publicKey, entry) };
}

function parted<Entry>(entries: readonly Entry[], isKept: (entry: Entry) => boolean): [kept: Entry[], left: Entry[]] {
  const [kept, left]: [Entry[], Entry[]] = [[], []];
  for (const entry of entries) (isKept(entry) ? kept : left).push(entry);
  return [kept, left];
}

function lowest(values: readonly number[]): number | null {
  return values.reduce<number | null>((low, value) => (low === null || value < low ? value : low), null);
}
