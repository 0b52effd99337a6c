// The rows of entries: what each key signed, each row with its integrity code. Reading a single entry checks that row;
// saying that an entry is NOT there needs the whole history of the key, whose number and digest must be those of its
// head. An entry below what was pruned was put back by somebody: that is damage too.

import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { SignerError } from '../../../api/errors.ts';
import {
  DIGEST_BYTES,
  type EntryCodes,
  entrySum,
  type HeadSeal,
  historyCodes,
  type UncheckedHead,
} from '../../history/codes.ts';
import { INTEGRITY_CODE_BYTES, type RowIntegrity } from '../../history/integrity.ts';
import type { Coded } from '../../history/merge.ts';
import { holdsForgotten, type VoteEpochs } from '../../history/prune.ts';
import type { BlockEntry, KeyHistory, VoteEntry } from '../../history/rules.ts';
import type { Head, HistorySink, OldestEntries } from '../../operations/store.ts';

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

// The rows of heads (history/rules.ts), one row a key. A head is believed only when its integrity code is right; a head
// that is missing is believed only while the database holds as many heads as its record says.

/** What finds and reads throws SignerError `slashing_integrity` when the row fails its check. */
export interface HeadTable {
  find(publicKey: Uint8Array): Head | undefined;
  findById(id: number): Head | undefined;
  nextId(): number;
  insert(head: Head): void;
  update(head: Head): void;
}

export function headTable(connection: DatabaseSync, integrity: RowIntegrity): HeadTable {
  const codes = historyCodes(integrity);
  const columns = COLUMNS.join(', ');
  const byKey = connection.prepare(`SELECT ${columns}, id FROM validators WHERE public_key = ?`);
  const byId = connection.prepare(`SELECT ${columns}, id, public_key FROM validators WHERE id = ?`);
  const insert = connection.prepare(
    `INSERT INTO validators (id, public_key, ${COLUMNS.join(', ')}) VALUES (?, ?, ${COLUMNS.map(() => '?').join(', ')})`,
  );
  const update = connection.prepare(
    `UPDATE validators SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')} WHERE id = ?`,
  );
  const lastId = connection.prepare('SELECT max(id) FROM validators');
  for (const statement of [byKey, byId, lastId]) statement.setReturnArrays(true);

  function read(row: readonly SQLOutputValue[], publicKey: Uint8Array): Head {
    const state = codes.openHead(publicKey, uncheckedHead(row));
    if (state === undefined) throw damaged('validator');
    return { id: numberOf(row[COLUMNS.length]), publicKey, state };
  }
  function cellsOfHead({ publicKey, state }: Head) {
    const { highest, lowWater, prunedBelow, blocks, attestations, tenure } = state;
    return [
      lowWater.slot,
      lowWater.sourceEpoch,
      lowWater.targetEpoch,
      highest.blockSlot,
      highest.sourceEpoch,
      highest.targetEpoch,
      prunedBelow.slot,
      prunedBelow.targetEpoch,
      tenure,
      blocks.count,
      attestations.count,
      packedSeal(codes.sealHead(publicKey, state)),
    ];
  }

  return {
    find(publicKey) {
      const row: unknown = byKey.get(publicKey);
      return Array.isArray(row) ? read(row, publicKey) : undefined;
    },
    findById(id) {
      const row: unknown = byId.get(id);
      return Array.isArray(row) ? read(row, bytesOf(row[COLUMNS.length + 1])) : undefined;
    },
    nextId: () => ((lastId.get() as unknown as [number | null])[0] ?? 0) + 1,
    insert: (head) => {
      insert.run(head.id, head.publicKey, ...cellsOfHead(head));
    },
    update: (head) => {
      update.run(...cellsOfHead(head), head.id);
    },
  };
}

const COLUMNS = [
  ...['low_slot', 'low_source_epoch', 'low_target_epoch'],
  ...['high_slot', 'high_source_epoch', 'high_target_epoch'],
  ...['pruned_slot', 'pruned_target_epoch', 'tenure', 'block_count', 'attestation_count', 'seal'],
];

function uncheckedHead(row: readonly SQLOutputValue[]): UncheckedHead {
  return {
    state: {
      lowWater: { slot: numberOrNull(row[0]), sourceEpoch: numberOrNull(row[1]), targetEpoch: numberOrNull(row[2]) },
      highest: {
        blockSlot: numberOrNull(row[3]),
        sourceEpoch: numberOrNull(row[4]),
        targetEpoch: numberOrNull(row[5]),
      },
      prunedBelow: { slot: numberOrNull(row[6]), targetEpoch: numberOrNull(row[7]) },
      tenure: numberOf(row[8]),
    },
    blockCount: numberOf(row[9]),
    attestationCount: numberOf(row[10]),
    seal: unpackedSeal(bytesOf(row[11])),
  };
}

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

// What a cell of a row may hold; anything else is damage, which makes 503 for whatever the row is about. And what an
// error of SQLite says: damage of a row, or a fault of the connection.

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

/** Whether the connection is to be opened anew. */
export function isFaultOfConnection(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false;
  const primary = error.errcode & 0xff;
  return primary !== SQLITE_BUSY && primary !== SQLITE_FULL;
}
