// The rows of a key: its head, and what it signed, each under its integrity code. A missing head is believed only while
// the database has as many heads as its record says (record.ts); a missing entry only after the whole history was read,
// whose number and digest must be those of the head. An entry below what was pruned was put back: that is damage too.

import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { SignerError } from '../../../api/errors.ts';
import {
  DIGEST_BYTES,
  type EntryCodes,
  entrySum,
  type HeadSeal,
  headNumbers,
  historyCodes,
} from '../../history/codes.ts';
import { INTEGRITY_CODE_BYTES, type RowIntegrity } from '../../history/integrity.ts';
import type { Coded } from '../../history/merge.ts';
import { holdsForgotten } from '../../history/prune.ts';
import type { EntrySet } from '../../history/rules.ts';
import { type Head, type HistorySink, historyCollector, type OldestEntries } from '../../operations/store.ts';
import type { BlockEntry, KeyHistory, VoteEntry, VoteEpochs } from '../../types.ts';

const PAGE_ENTRIES = 1000;
/** Votes of a key from which on its lowest source is not looked for, which needs all of them. */
const MAX_VOTES_LOOKED_AT = 20_000;

/** Reads page by page; yields how many entries each had. */
type Pages = Generator<number, void>;

/** What reads throws SignerError `slashing_integrity` for a row that fails its check. */
export type EntryTables = ReturnType<typeof entryTables>;

export function entryTables(connection: DatabaseSync, integrity: RowIntegrity) {
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
  function readBlocks(head: Head, sink: HistorySink): Pages {
    const next = (last: BlockEntry | undefined) =>
      blocks.page.all(head.id, last?.slot ?? -1, PAGE_ENTRIES).map((row) => readBlock(head, cellsOf(row)));
    return pagesOf('blocks', head.state.blocks, next, ({ slot, signingRoot }) => sink.block({ slot, signingRoot }));
  }
  function readVotes(head: Head, sink: HistorySink): Pages {
    const next = (last: VoteEntry | undefined) =>
      votes.page
        .all(head.id, last?.targetEpoch ?? -1, last?.sourceEpoch ?? -1, PAGE_ENTRIES)
        .map((row) => readVote(head, cellsOf(row)));
    return pagesOf('attestations', head.state.attestations, next, ({ sourceEpoch, targetEpoch, signingRoot }) =>
      sink.vote({ sourceEpoch, targetEpoch, signingRoot }),
    );
  }
  function collected(pagesInto: (sink: HistorySink) => Pages): KeyHistory {
    const { history, sink } = historyCollector();
    for (const _ of pagesInto(sink));
    return history;
  }
  function confirmNone(statement: StatementSync, { id }: Head, mark: number | null): void {
    if (statement.get(id, mark ?? -1) !== undefined) throw damaged('an entry lies beyond the marks');
  }

  return {
    blockAt(head: Head, slot: number): BlockEntry | undefined {
      const row = blocks.one.get(head.id, slot);
      return row === undefined ? undefined : readBlock(head, cellsOf(row));
    },
    /** More than one only after an import that contradicts itself. */
    votesAt: (head: Head, targetEpoch: number): VoteEntry[] =>
      votes.at.all(head.id, targetEpoch).map((row) => readVote(head, cellsOf(row))),
    /** One vote inside the given epochs, if there is one, and one around them (EIP-3076 condition 3). */
    votesAgainst: (head: Head, { sourceEpoch, targetEpoch }: VoteEpochs): VoteEntry[] =>
      [voteInside, voteAround]
        .map((statement) => statement.get(head.id, sourceEpoch, targetEpoch))
        .filter((row) => row !== undefined)
        .map((row) => readVote(head, cellsOf(row))),
    allBlocks: (head: Head) => collected((sink) => readBlocks(head, sink)),
    allVotes: (head: Head) => collected((sink) => readVotes(head, sink)),
    /** The whole history, shown to be whole when it ends; the state of the key must not change meanwhile. */
    *read(head: Head, sink: HistorySink): Pages {
      yield* readBlocks(head, sink);
      yield* readVotes(head, sink);
    },
    blocksBelow: (head: Head, slot: number, limit: number) =>
      blocks.below.all(head.id, slot, limit).map((row) => readBlock(head, cellsOf(row))),
    votesBelow: (head: Head, targetEpoch: number, limit: number) =>
      votes.below.all(head.id, targetEpoch, limit).map((row) => readVote(head, cellsOf(row))),
    /** Beyond the oldest entries of the key; a very long list of votes is not looked through. */
    lowestBeyond({ id, state }: Head, slot: number, vote: VoteEpochs | undefined): OldestEntries['lowestKept'] {
      const { sourceEpoch, targetEpoch } = vote ?? { sourceEpoch: -1, targetEpoch: -1 };
      const isLong = state.attestations.count > MAX_VOTES_LOOKED_AT;
      const lowest = (row: unknown) => numberOrNull(cellsOf(row)[0]);
      return {
        slot: lowest(lowestSlot.get(id, slot)),
        sourceEpoch: isLong ? null : lowest(lowestSource.get(id, targetEpoch, sourceEpoch)),
        targetEpoch: lowest(lowestTarget.get(id, targetEpoch, sourceEpoch)),
      };
    },
    /** Rows beyond the marks of the head are of another time than the head. */
    confirmNoBlockBeyond: (head: Head) => confirmNone(blocks.beyond, head, head.state.highest.blockSlot),
    confirmNoVoteBeyond: (head: Head) => confirmNone(votes.beyond, head, head.state.highest.targetEpoch),
    insertBlock(id: number, { slot, signingRoot }: BlockEntry, { code }: Pick<EntryCodes, 'code'>): void {
      blocks.insert.run(id, slot, signingRoot, code);
    },
    insertVote(id: number, vote: VoteEntry, { code }: Pick<EntryCodes, 'code'>): void {
      votes.insert.run(id, vote.targetEpoch, vote.sourceEpoch, vote.signingRoot, code);
    },
    removeBlock(id: number, { slot }: BlockEntry): void {
      blocks.remove.run(id, slot);
    },
    removeVote(id: number, { sourceEpoch, targetEpoch }: VoteEpochs): void {
      votes.remove.run(id, targetEpoch, sourceEpoch);
    },
  };
}

/** Each page goes to the sink once all of it passed its codes. */
function* pagesOf<Entry>(
  kind: string,
  set: EntrySet,
  next: (last: Entry | undefined) => Coded<Entry>[],
  sink: (entry: Entry) => void,
): Pages {
  const sum = entrySum();
  let page: Coded<Entry>[] = [];
  do {
    page = next(page.at(-1));
    for (const entry of page) {
      sum.add(entry.element);
      sink(entry);
    }
    yield page.length;
  } while (page.length === PAGE_ENTRIES);
  if (!sum.isWhole(set)) throw damaged(`${kind} are missing`);
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

/** `find` throws SignerError `slashing_integrity` when the row fails its check. */
export function headTable(connection: DatabaseSync, integrity: RowIntegrity) {
  const codes = historyCodes(integrity);
  const find = connection.prepare(`SELECT ${COLUMNS.join(', ')}, id FROM validators WHERE public_key = ?`);
  const insert = connection.prepare(
    `INSERT INTO validators (id, public_key, ${COLUMNS.join(', ')}) VALUES (?, ?, ${COLUMNS.map(() => '?').join(', ')})`,
  );
  const update = connection.prepare(
    `UPDATE validators SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')} WHERE id = ?`,
  );
  const lastId = connection.prepare('SELECT max(id) FROM validators');
  for (const statement of [find, lastId]) statement.setReturnArrays(true);
  const cells = ({ publicKey, state }: Head) => [...headNumbers(state), packedSeal(codes.sealHead(publicKey, state))];

  return {
    find(publicKey: Uint8Array): Head | undefined {
      const row: unknown = find.get(publicKey);
      if (!Array.isArray(row)) return undefined;
      const seal = unpackedSeal(bytesOf(row[SEAL]));
      const state = codes.openHead(publicKey, row.slice(0, SEAL).map(numberOrNull), seal);
      if (state === undefined) throw damaged('validator');
      return { id: numberOf(row[SEAL + 1]), publicKey, state };
    },
    nextId: () => ((lastId.get() as unknown as [number | null])[0] ?? 0) + 1,
    insert(head: Head): void {
      insert.run(head.id, head.publicKey, ...cells(head));
    },
    update(head: Head): void {
      update.run(...cells(head), head.id);
    },
  };
}

/** The numbers in the order of `headNumbers`, and the seal. */
const COLUMNS = [
  ...['high_slot', 'high_source_epoch', 'high_target_epoch'],
  ...['low_slot', 'low_source_epoch', 'low_target_epoch'],
  ...['pruned_slot', 'pruned_target_epoch', 'tenure', 'block_count', 'attestation_count', 'seal'],
];
const SEAL = COLUMNS.length - 1;

// One cell for all of it: code, digests, nonce. Each cell of bytes costs an object a read.
const BLOCK_DIGEST = INTEGRITY_CODE_BYTES;
const ATTESTATION_DIGEST = BLOCK_DIGEST + DIGEST_BYTES;
const NONCE = ATTESTATION_DIGEST + DIGEST_BYTES;

function packedSeal({ code, blockDigest, attestationDigest, nonce }: HeadSeal): Uint8Array {
  const seal = new Uint8Array(NONCE + nonce.length);
  seal.set(code);
  seal.set(blockDigest, BLOCK_DIGEST);
  seal.set(attestationDigest, ATTESTATION_DIGEST);
  seal.set(nonce, NONCE);
  return seal;
}

/** A seal that is too short has parts that are too short, and fails its code. */
function unpackedSeal(seal: Uint8Array): HeadSeal {
  return {
    code: seal.subarray(0, BLOCK_DIGEST),
    blockDigest: seal.subarray(BLOCK_DIGEST, ATTESTATION_DIGEST),
    attestationDigest: seal.subarray(ATTESTATION_DIGEST, NONCE),
    nonce: seal.subarray(NONCE),
  };
}

// A cell of another type is damage, which makes 503 for what the row is about.

export function damaged(row: string): SignerError {
  return new SignerError('slashing_integrity', { detail: { row } });
}

export function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw damaged('a number is missing');
  return value;
}

export function numberOrNull(value: unknown): number | null {
  return value === null ? null : numberOf(value);
}

export function bytesOf(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw damaged('bytes are missing');
  return value;
}

export function bytesOrNull(value: unknown): Uint8Array | null {
  return value === null ? null : bytesOf(value);
}

export function cellsOf(row: unknown): readonly SQLOutputValue[] {
  if (!Array.isArray(row)) throw new TypeError('the statement returns arrays');
  return row;
}

// Extended result codes of SQLite (sqlite.org/rescode.html): a row is there that by its head is not.
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/** A row that fails its check, is in the way of another, or holds a number that this program never writes. */
export function isDamage(error: unknown): boolean {
  if (error instanceof SignerError) return error.reason === 'slashing_integrity';
  if (!(error instanceof Error)) return false;
  if ('code' in error && error.code === 'ERR_OUT_OF_RANGE') return true;
  return (
    'errcode' in error && (error.errcode === SQLITE_CONSTRAINT_PRIMARYKEY || error.errcode === SQLITE_CONSTRAINT_UNIQUE)
  );
}

// Primary result codes of SQLite (sqlite.org/rescode.html). After these the connection is as good as before.
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

export function isFaultOfConnection(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false;
  const primary = error.errcode & 0xff;
  return primary !== SQLITE_BUSY && primary !== SQLITE_FULL;
}
