// The rows of entries: what each key signed, each row with its integrity code. Reading a single entry checks that row;
// saying that an entry is NOT there needs the whole history of the key, whose number and digest must be those of its
// head. An entry below what was pruned was put back by somebody: that is damage too.

import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { type EntryCodes, entrySum, historyCodes } from '../../history/codes.ts';
import type { RowIntegrity } from '../../history/integrity.ts';
import type { Coded } from '../../history/merge.ts';
import { holdsForgotten, type VoteEpochs } from '../../history/prune.ts';
import type { BlockEntry, KeyHistory, VoteEntry } from '../../history/state.ts';
import type { Head, HistorySink, OldestEntries } from '../../operations/store.ts';
import { bytesOf, bytesOrNull, cellsOf, damaged, numberOf, numberOrNull } from './cells.ts';

const PAGE_ENTRIES = 1000;
/** Votes of a key from which on its lowest source is not looked for, which needs all of them. */
const MAX_VOTES_LOOKED_AT = 20_000;

/** Reads page by page; yields how many entries each had. */
type Pages = Generator<number, void>;

/** Every method that reads throws SignerError `slashing_integrity` for a row that fails its check. */
export interface EntryTables {
  blockAt(head: Head, slot: number): BlockEntry | undefined;
  /** All entries for one target: more than one only after an import that contradicts itself. */
  votesAt(head: Head, targetEpoch: number): VoteEntry[];
  /** One vote inside the given epochs, if there is one, and one around them (EIP-3076 condition 3). */
  votesAgainst(head: Head, epochs: Omit<VoteEntry, 'signingRoot'>): VoteEntry[];
  allBlocks(head: Head): KeyHistory;
  allVotes(head: Head): KeyHistory;
  /** The whole history, shown to be whole when it ends; the state of the key must not change meanwhile. */
  read(head: Head, sink: HistorySink): Pages;
  blocksBelow(head: Head, slot: number, limit: number): Coded<BlockEntry>[];
  votesBelow(head: Head, targetEpoch: number, limit: number): Coded<VoteEntry>[];
  /** What is lowest beyond the oldest entries of the key; a very long list of votes is not looked through. */
  lowestBeyond(head: Head, slot: number, vote: VoteEpochs | undefined): OldestEntries['lowestKept'];
  /** Rows beyond the marks of the head are of another time than the head. */
  confirmNoBlockBeyond(head: Head): void;
  confirmNoVoteBeyond(head: Head): void;
  insertBlock(id: number, entry: BlockEntry, codes: Pick<EntryCodes, 'code'>): void;
  insertVote(id: number, entry: VoteEntry, codes: Pick<EntryCodes, 'code'>): void;
  removeBlock(id: number, entry: BlockEntry): void;
  removeVote(id: number, entry: VoteEntry): void;
}

export function entryTables(connection: DatabaseSync, integrity: RowIntegrity): EntryTables {
  const codes = historyCodes(integrity);
  const blocks = table(connection, 'blocks', ['slot']);
  const votes = table(connection, 'attestations', ['target_epoch', 'source_epoch']);
  const voteColumns = 'SELECT target_epoch, source_epoch, signing_root, code FROM attestations WHERE validator = ?';
  const voteInside = connection.prepare(
    `${voteColumns} AND source_epoch > ? AND target_epoch < ? ORDER BY target_epoch DESC LIMIT 1`,
  );
  const voteAround = connection.prepare(
    `${voteColumns} AND source_epoch < ? AND target_epoch > ? ORDER BY target_epoch LIMIT 1`,
  );
  const lowestSlot = connection.prepare('SELECT min(slot) FROM blocks WHERE validator = ? AND slot > ?');
  const votesBeyond = 'FROM attestations WHERE validator = ? AND (target_epoch, source_epoch) > (?, ?)';
  const lowestSource = connection.prepare(`SELECT min(source_epoch) ${votesBeyond}`);
  const lowestTarget = connection.prepare(`SELECT min(target_epoch) ${votesBeyond}`);
  for (const statement of [voteInside, voteAround, lowestSlot, lowestSource, lowestTarget]) {
    statement.setReturnArrays(true);
  }

  function readBlock({ publicKey, state }: Head, row: readonly SQLOutputValue[]): Coded<BlockEntry> {
    const entry = { slot: numberOf(row[0]), signingRoot: bytesOrNull(row[1]) };
    const { code, element } = codes.block(publicKey, entry);
    if (Buffer.compare(bytesOf(row[2]), code) !== 0) throw damaged('block');
    if (holdsForgotten(state, { blocks: [entry], attestations: [] })) throw damaged('a block that was pruned');
    return { ...entry, code, element };
  }
  function readVote({ publicKey, state }: Head, row: readonly SQLOutputValue[]): Coded<VoteEntry> {
    const entry = { targetEpoch: numberOf(row[0]), sourceEpoch: numberOf(row[1]), signingRoot: bytesOrNull(row[2]) };
    const { code, element } = codes.attestation(publicKey, entry);
    if (Buffer.compare(bytesOf(row[3]), code) !== 0) throw damaged('attestation');
    if (holdsForgotten(state, { blocks: [], attestations: [entry] })) throw damaged('an attestation that was pruned');
    return { ...entry, code, element };
  }
  function* readBlocks(head: Head, sink: HistorySink): Pages {
    const sum = entrySum();
    for (let after = -1, isMore = true; isMore; ) {
      const rows = blocks.page.all(head.id, after, PAGE_ENTRIES);
      for (const row of rows) {
        const entry = readBlock(head, cellsOf(row));
        sum.add(entry.element);
        sink.block({ slot: entry.slot, signingRoot: entry.signingRoot });
        after = entry.slot;
      }
      isMore = rows.length === PAGE_ENTRIES;
      yield rows.length;
    }
    if (!sum.isWhole(head.state.blocks)) throw damaged('blocks are missing');
  }
  function* readVotes(head: Head, sink: HistorySink): Pages {
    const sum = entrySum();
    let [afterTarget, afterSource] = [-1, -1];
    for (let isMore = true; isMore; ) {
      const rows = votes.page.all(head.id, afterTarget, afterSource, PAGE_ENTRIES);
      for (const row of rows) {
        const entry = readVote(head, cellsOf(row));
        const { sourceEpoch, targetEpoch, signingRoot } = entry;
        sum.add(entry.element);
        sink.vote({ sourceEpoch, targetEpoch, signingRoot });
        [afterTarget, afterSource] = [targetEpoch, sourceEpoch];
      }
      isMore = rows.length === PAGE_ENTRIES;
      yield rows.length;
    }
    if (!sum.isWhole(head.state.attestations)) throw damaged('attestations are missing');
  }
  function collected(pagesInto: (sink: HistorySink) => Pages): KeyHistory {
    const history = { blocks: [] as BlockEntry[], attestations: [] as VoteEntry[] };
    const pages = pagesInto({
      block: (entry) => void history.blocks.push(entry),
      vote: (entry) => void history.attestations.push(entry),
    });
    for (const _ of pages);
    return history;
  }
  function confirmNone(statement: StatementSync, { id }: Head, mark: number | null): void {
    if (statement.get(id, mark ?? -1) !== undefined) throw damaged('an entry lies beyond the marks');
  }

  return {
    blockAt(head, slot) {
      const row = blocks.one.get(head.id, slot);
      return row === undefined ? undefined : readBlock(head, cellsOf(row));
    },
    votesAt: (head, targetEpoch) => votes.at.all(head.id, targetEpoch).map((row) => readVote(head, cellsOf(row))),
    votesAgainst: (head, { sourceEpoch, targetEpoch }) =>
      [voteInside, voteAround]
        .map((statement) => statement.get(head.id, sourceEpoch, targetEpoch))
        .filter((row) => row !== undefined)
        .map((row) => readVote(head, cellsOf(row))),
    allBlocks: (head) => collected((sink) => readBlocks(head, sink)),
    allVotes: (head) => collected((sink) => readVotes(head, sink)),
    *read(head, sink) {
      yield* readBlocks(head, sink);
      yield* readVotes(head, sink);
    },
    blocksBelow: (head, slot, limit) =>
      blocks.below.all(head.id, slot, limit).map((row) => readBlock(head, cellsOf(row))),
    votesBelow: (head, targetEpoch, limit) =>
      votes.below.all(head.id, targetEpoch, limit).map((row) => readVote(head, cellsOf(row))),
    lowestBeyond({ id, state }, slot, vote) {
      const { sourceEpoch, targetEpoch } = vote ?? { sourceEpoch: -1, targetEpoch: -1 };
      const isLong = state.attestations.count > MAX_VOTES_LOOKED_AT;
      const lowest = (row: unknown) => numberOrNull(cellsOf(row)[0]);
      return {
        slot: lowest(lowestSlot.get(id, slot)),
        sourceEpoch: isLong ? null : lowest(lowestSource.get(id, targetEpoch, sourceEpoch)),
        targetEpoch: lowest(lowestTarget.get(id, targetEpoch, sourceEpoch)),
      };
    },
    confirmNoBlockBeyond: (head) => confirmNone(blocks.beyond, head, head.state.highest.blockSlot),
    confirmNoVoteBeyond: (head) => confirmNone(votes.beyond, head, head.state.highest.targetEpoch),
    insertBlock: (id, { slot, signingRoot }, { code }) => {
      blocks.insert.run(id, slot, signingRoot, code);
    },
    insertVote: (id, { sourceEpoch, targetEpoch, signingRoot }, { code }) => {
      votes.insert.run(id, targetEpoch, sourceEpoch, signingRoot, code);
    },
    removeBlock: (id, { slot }) => {
      blocks.remove.run(id, slot);
    },
    removeVote: (id, { sourceEpoch, targetEpoch }) => {
      votes.remove.run(id, targetEpoch, sourceEpoch);
    },
  };
}

function table(connection: DatabaseSync, name: 'blocks' | 'attestations', place: readonly string[]) {
  const columns = [...place, 'signing_root', 'code'];
  const selected = `SELECT ${columns.join(', ')} FROM ${name} WHERE validator = ?`;
  const order = `ORDER BY ${place.join(', ')} LIMIT ?`;
  const here = ['validator', ...place].map((column) => `${column} = ?`).join(' AND ');
  const marks = (names: readonly string[]) => names.map(() => '?').join(', ');
  const statements = {
    one: connection.prepare(`SELECT ${columns.join(', ')} FROM ${name} WHERE ${here}`),
    at: connection.prepare(`${selected} AND ${place[0]} = ?`),
    page: connection.prepare(`${selected} AND (${place.join(', ')}) > (${marks(place)}) ${order}`),
    below: connection.prepare(`${selected} AND ${place[0]} < ? ${order}`),
    beyond: connection.prepare(`SELECT 1 FROM ${name} WHERE validator = ? AND ${place[0]} > ? LIMIT 1`),
    insert: connection.prepare(`INSERT INTO ${name} (validator, ${columns.join(', ')}) VALUES (?, ${marks(columns)})`),
    remove: connection.prepare(`DELETE FROM ${name} WHERE ${here}`),
  };
  for (const statement of [statements.one, statements.at, statements.page, statements.below]) {
    statement.setReturnArrays(true);
  }
  return statements;
}
