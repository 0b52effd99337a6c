// The rows of a key as values. Whatever is read for a decision passes through here: a head or an entry that fails its
// code is `undefined`. What the codes are, and what a set of entries must be, is said in history/.

import { timingSafeEqual } from 'node:crypto';
import { DIGEST_BYTES, type EntryCodes, type HeadSeal, type HistoryCodes } from '../../history/codes.ts';
import type { BlockEntry, KeyState, VoteEntry } from '../../history/state.ts';
import type { PublicKeyHex } from '../../types.ts';

/** As selected by HEAD_COLUMNS. */
export interface HeadRow {
  readonly id: number;
  readonly public_key: Buffer;
  readonly highest_slot: number | null;
  readonly highest_source_epoch: number | null;
  readonly highest_target_epoch: number | null;
  readonly low_water_slot: number | null;
  readonly low_water_source_epoch: number | null;
  readonly low_water_target_epoch: number | null;
  readonly pruned_below_slot: number | null;
  readonly pruned_below_target_epoch: number | null;
  readonly retired: boolean;
  readonly blocks: number;
  readonly attestations: number;
  /** The nonce and the two masked digests of a seal; every head has them since step 2 of the schema. */
  readonly digests: Buffer | null;
  readonly code: Buffer;
}

export interface BlockRow {
  readonly slot: number;
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
}

export interface VoteRow {
  readonly source_epoch: number;
  readonly target_epoch: number;
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
}

export const HEAD_COLUMNS = `id, public_key, highest_slot, highest_source_epoch, highest_target_epoch,
  low_water_slot, low_water_source_epoch, low_water_target_epoch, pruned_below_slot, pruned_below_target_epoch,
  retired, blocks, attestations, digests, code`;

/** Undefined when the head fails its code. */
export function openHeadRow(codes: HistoryCodes, row: HeadRow): KeyState | undefined {
  const seal = sealOf(row);
  if (seal === undefined) return undefined;
  const state = {
    highest: {
      blockSlot: row.highest_slot,
      sourceEpoch: row.highest_source_epoch,
      targetEpoch: row.highest_target_epoch,
    },
    lowWater: {
      slot: row.low_water_slot,
      sourceEpoch: row.low_water_source_epoch,
      targetEpoch: row.low_water_target_epoch,
    },
    prunedBelow: { slot: row.pruned_below_slot, targetEpoch: row.pruned_below_target_epoch },
    isRetired: row.retired,
  };
  const head = { state, blockCount: row.blocks, attestationCount: row.attestations, seal };
  return codes.openHead(row.public_key, head);
}

function sealOf({ digests, code }: HeadRow): HeadSeal | undefined {
  const nonceBytes = (digests?.length ?? 0) - 2 * DIGEST_BYTES;
  if (digests === null || nonceBytes < 0) return undefined;
  const attestationsAt = nonceBytes + DIGEST_BYTES;
  return {
    nonce: digests.subarray(0, nonceBytes),
    blockDigest: digests.subarray(nonceBytes, attestationsAt),
    attestationDigest: digests.subarray(attestationsAt),
    code,
  };
}

/** The column `digests` of a seal. */
export function digestsOf({ nonce, blockDigest, attestationDigest }: HeadSeal): Buffer {
  return Buffer.concat([nonce, blockDigest, attestationDigest]);
}

/** Entries that pass their codes, and these. */
export interface ReadEntries<Entry> {
  readonly entries: readonly Entry[];
  readonly codes: readonly EntryCodes[];
}

/** Undefined when any of the rows fails its code. */
export function readBlockRows(
  codes: HistoryCodes,
  publicKey: Uint8Array,
  rows: readonly BlockRow[],
): ReadEntries<BlockEntry> | undefined {
  const entries = rows.map((row) => ({ slot: row.slot, signingRoot: row.signing_root }));
  return verified(
    rows,
    entries,
    ({ slot }) => isPossible(slot),
    (entry) => codes.block(publicKey, entry),
  );
}

export function readVoteRows(
  codes: HistoryCodes,
  publicKey: Uint8Array,
  rows: readonly VoteRow[],
): ReadEntries<VoteEntry> | undefined {
  const entries = rows.map((row) => ({
    sourceEpoch: row.source_epoch,
    targetEpoch: row.target_epoch,
    signingRoot: row.signing_root,
  }));
  const arePossible = (vote: VoteEntry) => isPossible(vote.sourceEpoch) && isPossible(vote.targetEpoch);
  return verified(rows, entries, arePossible, (entry) => codes.attestation(publicKey, entry));
}

function verified<Entry>(
  rows: readonly { readonly code: Buffer }[],
  entries: readonly Entry[],
  arePossible: (entry: Entry) => boolean,
  codesOf: (entry: Entry) => EntryCodes,
): ReadEntries<Entry> | undefined {
  const codes: EntryCodes[] = [];
  for (const [index, entry] of entries.entries()) {
    const stored = rows[index]?.code;
    if (stored === undefined || !arePossible(entry)) return undefined;
    const ofEntry = codesOf(entry);
    if (stored.length !== ofEntry.code.length || !timingSafeEqual(stored, ofEntry.code)) return undefined;
    codes.push(ofEntry);
  }
  return { entries, codes };
}

/** A number that this program never wrote has no code; the codes assert that they are not asked for one. */
function isPossible(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}

export function keyBytes(publicKey: PublicKeyHex): Buffer {
  return Buffer.from(publicKey.slice(2), 'hex');
}

export function keyHex(publicKey: Buffer): PublicKeyHex {
  return `0x${publicKey.toString('hex')}`;
}
