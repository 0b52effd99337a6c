// Reads all entries of one kind of a key, page by page, so that a long history holds up nobody, and shows that they are
// all: each passes its code, together they have the digest of the head, and none of them was forgotten before.

import { entrySum, type HistoryCodes } from '../../history/codes.ts';
import { holdsForgotten } from '../../history/prune.ts';
import type { BlockEntry, EntrySet, KeyHistory, KeyState, VoteEntry } from '../../history/state.ts';
import type { Connection } from '../connection/connections.ts';
import { type BlockRow, type HeadRow, type ReadEntries, readBlockRows, readVoteRows, type VoteRow } from './rows.ts';

/** Verifying so many rows takes a few milliseconds. */
const PAGE_ROWS = 1_000;

const PAGE_OF_BLOCKS = `
  SELECT slot, signing_root, code FROM strongroom.blocks
  WHERE validator_id = $1 AND slot > $2 ORDER BY slot LIMIT ${PAGE_ROWS}`;

const PAGE_OF_VOTES = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 AND (target_epoch, source_epoch) > ($2, $3)
  ORDER BY target_epoch, source_epoch LIMIT ${PAGE_ROWS}`;

export interface KeyToRead {
  readonly head: HeadRow;
  readonly state: KeyState;
}

/**
 * Ascending; undefined when the record of the key is damaged. The head is locked, or the transaction has a snapshot.
 */
export async function readHistory(
  connection: Connection,
  codes: HistoryCodes,
  key: KeyToRead,
): Promise<KeyHistory | undefined> {
  const blocks: BlockEntry[] = [];
  const attestations: VoteEntry[] = [];
  const areWhole = await Promise.all([
    readAllBlocks(connection, codes, key, (entry) => void blocks.push(entry)),
    readAllVotes(connection, codes, key, (entry) => void attestations.push(entry)),
  ]);
  return areWhole.includes(false) ? undefined : { blocks, attestations };
}

/** Whether the blocks are all of the key; those that came before that was known must not be used otherwise. */
export function readAllBlocks(
  connection: Connection,
  codes: HistoryCodes,
  { head, state }: KeyToRead,
  onEntry: (entry: BlockEntry) => void,
): Promise<boolean> {
  return readPages<BlockEntry>(state.blocks, onEntry, async (last) => {
    const values = [head.id, last?.slot ?? -1];
    const { rows } = await connection.query<BlockRow>({ name: 'page_of_blocks', text: PAGE_OF_BLOCKS, values });
    const page = readBlockRows(codes, head.public_key, rows);
    return page === undefined || holdsForgotten(state, { blocks: page.entries, attestations: [] }) ? undefined : page;
  });
}

/** The same for the votes. */
export function readAllVotes(
  connection: Connection,
  codes: HistoryCodes,
  { head, state }: KeyToRead,
  onEntry: (entry: VoteEntry) => void,
): Promise<boolean> {
  return readPages<VoteEntry>(state.attestations, onEntry, async (last) => {
    const values = [head.id, last?.targetEpoch ?? -1, last?.sourceEpoch ?? -1];
    const { rows } = await connection.query<VoteRow>({ name: 'page_of_votes', text: PAGE_OF_VOTES, values });
    const page = readVoteRows(codes, head.public_key, rows);
    return page === undefined || holdsForgotten(state, { blocks: [], attestations: page.entries }) ? undefined : page;
  });
}

async function readPages<Entry>(
  set: EntrySet,
  onEntry: (entry: Entry) => void,
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
    last = page.entries.at(-1);
    if (page.entries.length < PAGE_ROWS) return sum.isWhole(set);
  }
}
