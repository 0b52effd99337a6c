// What of an entry is carried into a store by an import, and out of it by an export, so that neither weakens a refusal.
// Pure; for the stores that keep the complete history (sqlite, postgres).

import type { HighWaterMarks, ValidatorHistory } from '../types.ts';

/** Conditions 2, 4 and 5 of EIP-3076; null while a key has no entry of the kind. */
export interface LowWaterMarks {
  readonly slot: number | null;
  readonly sourceEpoch: number | null;
  readonly targetEpoch: number | null;
}

type Block = ValidatorHistory['blocks'][number];
type Vote = ValidatorHistory['attestations'][number];

/**
 * A block that a file adds to a key with these marks (those before the import). At or below the mark every block was
 * refused, so it comes without its root: with it the block would be a repeat, and signable again.
 */
export function importedBlock<Entry extends Block>(entry: Entry, { slot }: LowWaterMarks): Entry {
  return slot !== null && entry.slot <= slot ? { ...entry, signingRoot: null } : entry;
}

/** The same for a vote. It is never left out: what it surrounds, or is surrounded by, stays refused. */
export function importedVote<Entry extends Vote>(entry: Entry, { sourceEpoch, targetEpoch }: LowWaterMarks): Entry {
  const isBelow =
    (sourceEpoch !== null && entry.sourceEpoch < sourceEpoch) ||
    (targetEpoch !== null && entry.targetEpoch <= targetEpoch);
  return isBelow ? { ...entry, signingRoot: null } : entry;
}

/** The marks of a key after a file of it was merged that stands for all that it does not list (ImportOptions.asMinimal). */
export function minimalMarks(
  marks: LowWaterMarks,
  { blocks, attestations }: Pick<ValidatorHistory, 'blocks' | 'attestations'>,
): LowWaterMarks {
  return {
    slot: blocks.reduce((mark, { slot }) => higher(mark, slot), marks.slot),
    sourceEpoch: attestations.reduce((mark, { sourceEpoch }) => higher(mark, sourceEpoch), marks.sourceEpoch),
    targetEpoch: attestations.reduce((mark, { targetEpoch }) => higher(mark, targetEpoch), marks.targetEpoch),
  };
}

/** The blocks of a key to write to a file: those below the mark say nothing that the mark does not say. */
export function exportedBlocks<Entry extends Block>(blocks: readonly Entry[], { slot }: LowWaterMarks): Entry[] {
  return blocks.filter((block) => slot === null || block.slot >= slot);
}

/**
 * The votes of a key to write to a file. A reader takes its marks from the lowest epochs in the file; where these would
 * be lower than the marks here (older entries were imported), one vote without a root at the highest epochs says more.
 */
export function exportedVotes(
  votes: readonly Vote[],
  { sourceEpoch, targetEpoch }: LowWaterMarks,
  highest: HighWaterMarks,
): readonly Vote[] {
  const sayAsMuch = votes.every(
    (vote) =>
      (sourceEpoch === null || vote.sourceEpoch >= sourceEpoch) &&
      (targetEpoch === null || vote.targetEpoch >= targetEpoch),
  );
  if (sayAsMuch) return votes;
  return [{ sourceEpoch: highest.sourceEpoch ?? 0, targetEpoch: highest.targetEpoch ?? 0, signingRoot: null }];
}

function higher(mark: number | null, value: number): number {
  return mark === null || value > mark ? value : mark;
}
