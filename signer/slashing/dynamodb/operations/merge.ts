// How marks rise when an EIP-3076 history is merged into them. A merged mark refuses whatever the mark or any entry of
// the history would: its numbers are the highest of all, and it keeps a root only while they are of one message.

import { encodeHex } from '../../../../common/formats/hex.ts';
import type { ConflictingEntry, HighWaterMarks, ValidatorHistory } from '../../types.ts';
import type { AttestationMark, BlockMark, Mark, MarkKind } from '../tables/items.ts';

/** `present` changes no number of the mark, `behind` lies below it, `conflict` is slashable against it. */
export type MergeOutcome = 'raised' | 'behind' | 'present' | 'conflict';

export interface Merge {
  readonly mark: Mark;
  readonly outcome: MergeOutcome;
}

export function blockMark({ slot, signingRoot }: ValidatorHistory['blocks'][number]): BlockMark {
  return { kind: 'block', slot, signingRoot: rootText(signingRoot) };
}

export function attestationMark(vote: ValidatorHistory['attestations'][number]): AttestationMark {
  const { sourceEpoch, targetEpoch, signingRoot } = vote;
  return { kind: 'attestation', sourceEpoch, targetEpoch, signingRoot: rootText(signingRoot) };
}

export function placeOf(mark: Mark): ConflictingEntry {
  if (mark.kind === 'block') return { slot: mark.slot };
  return { sourceEpoch: mark.sourceEpoch, targetEpoch: mark.targetEpoch };
}

/** A mark that refuses what this one does, and all that the floor says; itself when it does so already. */
export function raisedMark(kind: MarkKind, mark: Mark | undefined, floor: HighWaterMarks): Mark | undefined {
  const raised = kind === 'block' ? raisedBlock(mark, floor) : raisedAttestation(mark, floor);
  return raised !== undefined && mark !== undefined && isSameMark(raised, mark) ? mark : raised;
}

export function mergeMarks(mark: Mark, entry: Mark): Merge {
  if (mark.kind === 'block' && entry.kind === 'block') return mergeBlocks(mark, entry);
  if (mark.kind === 'attestation' && entry.kind === 'attestation') return mergeAttestations(mark, entry);
  throw new TypeError('marks of two kinds are never merged');
}

export function isSameMark(one: Mark, other: Mark): boolean {
  return one.signingRoot === other.signingRoot && hasSameNumbers(one, other);
}

function raisedBlock(mark: Mark | undefined, { blockSlot }: HighWaterMarks): Mark | undefined {
  if (blockSlot === null || (mark?.kind === 'block' && mark.slot > blockSlot)) return mark;
  return { kind: 'block', slot: blockSlot, signingRoot: null };
}

function raisedAttestation(mark: Mark | undefined, { sourceEpoch, targetEpoch }: HighWaterMarks): Mark | undefined {
  if (sourceEpoch === null && targetEpoch === null) return mark;
  const own = mark?.kind === 'attestation' ? mark : undefined;
  const [source, target] = [sourceEpoch ?? 0, targetEpoch ?? 0];
  if (own !== undefined && own.sourceEpoch >= source && (own.targetEpoch > target || targetEpoch === null)) return own;
  return {
    kind: 'attestation',
    sourceEpoch: Math.max(own?.sourceEpoch ?? 0, source),
    targetEpoch: Math.max(own?.targetEpoch ?? 0, target),
    signingRoot: null,
  };
}

function mergeBlocks(mark: BlockMark, entry: BlockMark): Merge {
  if (entry.slot > mark.slot) return { mark: entry, outcome: 'raised' };
  if (entry.slot < mark.slot) return { mark, outcome: 'behind' };
  return mergeRoots(mark, entry);
}

function mergeAttestations(mark: AttestationMark, entry: AttestationMark): Merge {
  if (hasSameNumbers(mark, entry)) return mergeRoots(mark, entry);
  const sourceEpoch = Math.max(mark.sourceEpoch, entry.sourceEpoch);
  const targetEpoch = Math.max(mark.targetEpoch, entry.targetEpoch);
  const conflict: Merge = { mark: { ...mark, sourceEpoch, targetEpoch, signingRoot: null }, outcome: 'conflict' };
  // EIP-3076 condition 3: two votes for one target.
  if (mark.targetEpoch === entry.targetEpoch) return conflict;
  const [higher, lower] = mark.targetEpoch > entry.targetEpoch ? [mark, entry] : [entry, mark];
  // EIP-3076 condition 3: the vote with the higher target has the lower source, so it surrounds the other.
  if (higher.sourceEpoch < lower.sourceEpoch) return conflict;
  return { mark: higher, outcome: higher === entry ? 'raised' : 'behind' };
}

/** Two roots of marks with the same numbers, or one that is unknown, leave nothing that may be signed again. */
function mergeRoots(mark: Mark, entry: Mark): Merge {
  if (mark.signingRoot === entry.signingRoot) return { mark, outcome: 'present' };
  const areBothKnown = mark.signingRoot !== null && entry.signingRoot !== null;
  return { mark: { ...mark, signingRoot: null }, outcome: areBothKnown ? 'conflict' : 'present' };
}

function hasSameNumbers(one: Mark, other: Mark): boolean {
  if (one.kind === 'block') return other.kind === 'block' && one.slot === other.slot;
  if (other.kind === 'block') return false;
  return one.sourceEpoch === other.sourceEpoch && one.targetEpoch === other.targetEpoch;
}

function rootText(root: Uint8Array | null): string | null {
  return root === null ? null : encodeHex(root);
}
