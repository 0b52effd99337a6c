// The rows of a key as values: a head or an entry that fails its code is `undefined`.

import { timingSafeEqual } from 'node:crypto';
import type { Turns } from '../../../parallel.ts';
import { DIGEST_BYTES, type EntryCodes, entrySum, type HeadSeal, type HistoryCodes } from '../../history/codes.ts';
import { holdsForgotten } from '../../history/prune.ts';
import type { BlockEntry, EntrySet, KeyState, VoteEntry } from '../../history/state.ts';
import type { Head } from '../../operations/store.ts';
import type { Connection } from '../connection/connections.ts';

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
  readonly tenure: number;
  readonly blocks: number;
  readonly attestations: number;
  /** The nonce and the two masked digests of a seal. */
  readonly digests: Buffer;
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

const HEAD_COLUMNS = `id, public_key, highest_slot, highest_source_epoch, highest_target_epoch,
  low_water_slot, low_water_source_epoch, low_water_target_epoch, pruned_below_slot, pruned_below_target_epoch,
  tenure, blocks, attestations, digests, code`;

export const SELECT_HEADS = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key`;

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
    tenure: row.tenure,
  };
  const head = { state, blockCount: row.blocks, attestationCount: row.attestations, seal };
  return codes.openHead(row.public_key, head);
}

function sealOf({ digests, code }: HeadRow): HeadSeal | undefined {
  const nonceBytes = digests.length - 2 * DIGEST_BYTES;
  if (nonceBytes < 0) return undefined;
  const attestationsAt = nonceBytes + DIGEST_BYTES;
  return {
    nonce: digests.subarray(0, nonceBytes),
    blockDigest: digests.subarray(nonceBytes, attestationsAt),
    attestationDigest: digests.subarray(attestationsAt),
    code,
  };
}

export function digestsOf({ nonce, blockDigest, attestationDigest }: HeadSeal): Buffer {
  return Buffer.concat([nonce, blockDigest, attestationDigest]);
}

export interface ReadEntries<Entry> {
  readonly entries: readonly Entry[];
  readonly codes: readonly EntryCodes[];
}

/** Undefined when any fails its code, or is of an entry that was forgotten. */
export function readBlockRows(
  codes: HistoryCodes,
  { publicKey, state }: Pick<Head, 'publicKey' | 'state'>,
  rows: readonly BlockRow[],
): ReadEntries<BlockEntry> | undefined {
  const entries = rows.map((row) => ({ slot: row.slot, signingRoot: row.signing_root }));
  const arePossible = ({ slot }: BlockEntry) => isPossible(slot);
  const read = verified(rows, entries, arePossible, (entry) => codes.block(publicKey, entry));
  return holdsForgotten(state, { blocks: entries, attestations: [] }) ? undefined : read;
}

export function readVoteRows(
  codes: HistoryCodes,
  { publicKey, state }: Pick<Head, 'publicKey' | 'state'>,
  rows: readonly VoteRow[],
): ReadEntries<VoteEntry> | undefined {
  const entries = rows.map((row) => ({
    sourceEpoch: row.source_epoch,
    targetEpoch: row.target_epoch,
    signingRoot: row.signing_root,
  }));
  const arePossible = (vote: VoteEntry) => isPossible(vote.sourceEpoch) && isPossible(vote.targetEpoch);
  const read = verified(rows, entries, arePossible, (entry) => codes.attestation(publicKey, entry));
  return holdsForgotten(state, { blocks: [], attestations: entries }) ? undefined : read;
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

/** A number that this program never wrote has no code. */
function isPossible(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}

// All entries of one kind, shown to be all: together they have the digest of the head.

/** Verifying so many rows takes a few milliseconds. */
const PAGE_ROWS = 1_000;

const PAGE_OF_BLOCKS = `
  SELECT slot, signing_root, code FROM strongroom.blocks
  WHERE validator_id = $1 AND slot > $2 ORDER BY slot LIMIT ${PAGE_ROWS}`;

const PAGE_OF_VOTES = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 AND (target_epoch, source_epoch) > ($2, $3)
  ORDER BY target_epoch, source_epoch LIMIT ${PAGE_ROWS}`;

/** What came before that was known must not be used otherwise. */
export function readAllBlocks(
  connection: Connection,
  codes: HistoryCodes,
  head: Head,
  onEntry: (entry: BlockEntry) => void,
  turn: Turns['turn'],
): Promise<boolean> {
  return readPages<BlockEntry>(head.state.blocks, onEntry, turn, async (last) => {
    const values = [head.id, last?.slot ?? -1];
    const { rows } = await connection.query<BlockRow>({ name: 'page_of_blocks', text: PAGE_OF_BLOCKS, values });
    return readBlockRows(codes, head, rows);
  });
}

export function readAllVotes(
  connection: Connection,
  codes: HistoryCodes,
  head: Head,
  onEntry: (entry: VoteEntry) => void,
  turn: Turns['turn'],
): Promise<boolean> {
  return readPages<VoteEntry>(head.state.attestations, onEntry, turn, async (last) => {
    const values = [head.id, last?.targetEpoch ?? -1, last?.sourceEpoch ?? -1];
    const { rows } = await connection.query<VoteRow>({ name: 'page_of_votes', text: PAGE_OF_VOTES, values });
    return readVoteRows(codes, head, rows);
  });
}

async function readPages<Entry>(
  set: EntrySet,
  onEntry: (entry: Entry) => void,
  turn: Turns['turn'],
  readPage: (last: Entry | undefined) => Promise<ReadEntries<Entry> | undefined>,
): Promise<boolean> {
  const sum = entrySum();
  let last: Entry | undefined;
  for (let read = 0; ; ) {
    const page = await readPage(last);
    read += page?.entries.length ?? 0;
    if (page === undefined || read > set.count) return false;
    for (const { element } of page.codes) sum.add(element);
    for (const entry of page.entries) onEntry(entry);
    await turn(page.entries.length);
    last = page.entries.at(-1);
    if (page.entries.length < PAGE_ROWS) return sum.isWhole(set);
  }
}
