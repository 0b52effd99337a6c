// The rows of a key: its head, and what it signed, each under its integrity code. A missing head is believed only while
// the database has as many heads as its record says (record.ts); a missing entry only after the whole history was read,
// whose number and digest must be those of the head. An entry below what was pruned was put back: that is damage too.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { SignerError } from '../../../api/errors.ts';
import {
  BLOCKS,
  type Coded,
  type EntryCodes,
  type EntryKind,
  entrySum,
  type HeadCode,
  type HistoryCodes,
  headNumbers,
  historyCodes,
  INTEGRITY_CODE_BYTES,
  type RowIntegrity,
  VOTES,
} from '../../history/codes.ts';
import { isForgotten } from '../../history/prune.ts';
import type { Head, HistorySink, OldestEntries } from '../../operations/store.ts';
import type { BlockEntry, VoteEntry, VoteEpochs } from '../../types.ts';

const PAGE_ENTRIES = 1000;
/** Votes of a key from which on its lowest source is not looked for, which needs all of them. */
const MAX_VOTES_LOOKED_AT = 20_000;

/** Reads page by page; yields how many entries each had. */
type Pages = Generator<number, void>;

/** What reads throws SignerError `slashing_integrity` for a row that fails its check. */
export type EntryTables = ReturnType<typeof entryTables>;

export function entryTables(connection: DatabaseSync, integrity: RowIntegrity) {
  const codes = historyCodes(integrity);
  const blocks = entryTable(connection, BLOCKS, codes);
  const votes = entryTable(connection, VOTES, codes);
  const voteInside = votes.select('AND source_epoch > ? AND target_epoch < ? ORDER BY target_epoch DESC LIMIT 1');
  const voteAround = votes.select('AND source_epoch < ? AND target_epoch > ? ORDER BY target_epoch LIMIT 1');
  return {
    blocks,
    votes,
    /** One vote inside the given epochs, if there is one, and one around them (EIP-3076 condition 3). */
    votesAgainst: (head: Head, { sourceEpoch, targetEpoch }: VoteEpochs): VoteEntry[] =>
      [voteInside, voteAround]
        .map((statement) => statement.get(head.id, sourceEpoch, targetEpoch))
        .filter((row) => row !== undefined)
        .map((row) => votes.read(head, row)),
    /** The whole history, shown to be whole when it ends; the state of the key must not change meanwhile. */
    *read(head: Head, sink: HistorySink): Pages {
      yield* blocks.pages(head, sink.block);
      yield* votes.pages(head, sink.vote);
    },
    /** Beyond the oldest entries of the key; a very long list of votes is not looked through. */
    lowestBeyond(head: Head, block: BlockEntry | undefined, vote: VoteEntry | undefined): OldestEntries['lowestKept'] {
      const isLong = head.state.attestations.count > MAX_VOTES_LOOKED_AT;
      return {
        slot: blocks.lowestAfter(head, block, 'slot'),
        sourceEpoch: isLong ? null : votes.lowestAfter(head, vote, 'source_epoch'),
        targetEpoch: votes.lowestAfter(head, vote, 'target_epoch'),
      };
    },
  };
}

export type EntryTable<Entry extends BlockEntry | VoteEntry> = ReturnType<typeof entryTable<Entry>>;

function entryTable<Entry extends BlockEntry | VoteEntry>(
  connection: DatabaseSync,
  kind: EntryKind<Entry>,
  codes: HistoryCodes,
) {
  const { noun, name, columns, placeOf } = kind;
  const cells = [...columns, 'signing_root', 'code'];
  const place = columns.join(', ');
  const marks = (names: readonly string[]) => names.map(() => '?').join(', ');
  const here = ['validator', ...columns].map((column) => `${column} = ?`).join(' AND ');
  const select = (rest: string, what = cells.join(', ')) => {
    const statement = connection.prepare(`SELECT ${what} FROM ${name} WHERE validator = ? ${rest}`);
    statement.setReturnArrays(true);
    return statement;
  };
  const after = `AND (${place}) > (${marks(columns)})`;
  const at = select(`AND ${columns[0]} = ?`);
  const page = select(`${after} ORDER BY ${place} LIMIT ?`);
  const below = select(`AND ${columns[0]} < ? ORDER BY ${place} LIMIT ?`);
  const beyond = select(`AND ${columns[0]} > ? LIMIT 1`, '1');
  const lowest = new Map(columns.map((column) => [column, select(after, `min(${column})`)]));
  const insert = connection.prepare(`INSERT INTO ${name} (validator, ${cells.join(', ')}) VALUES (?, ${marks(cells)})`);
  const remove = connection.prepare(`DELETE FROM ${name} WHERE ${here}`);
  const placeAfter = (last: Entry | undefined): readonly number[] => (last ? placeOf(last) : columns.map(() => -1));

  function read({ publicKey, state }: Head, found: unknown): Coded<Entry> {
    const row = cellsOf(found);
    const numbers = columns.map((_, index) => numberOf(row[index]));
    const entry = kind.entryOf(bytesOrNull(row[columns.length]), ...numbers);
    const { code, element } = codes.entry(kind, publicKey, entry);
    if (Buffer.compare(requiredBytes(row[columns.length + 1]), code) !== 0) throw damaged(noun);
    if (isForgotten(kind, state, entry)) throw damaged(`${noun === 'block' ? 'a' : 'an'} ${noun} that was pruned`);
    return { ...entry, code, element };
  }

  /** Each page goes to the sink once all of it passed its codes. */
  function* pages(head: Head, sink: (entry: Entry) => void): Pages {
    const sum = entrySum();
    let found: Coded<Entry>[] = [];
    do {
      found = page.all(head.id, ...placeAfter(found.at(-1)), PAGE_ENTRIES).map((row) => read(head, row));
      for (const entry of found) {
        sum.add(entry.element);
        sink(kind.entryOf(entry.signingRoot, ...placeOf(entry)));
      }
      yield found.length;
    } while (found.length === PAGE_ENTRIES);
    if (!sum.isWhole(head.state[name])) throw damaged(`${name} are missing`);
  }

  return {
    select,
    read,
    pages,
    all(head: Head): Entry[] {
      const entries: Entry[] = [];
      for (const _ of pages(head, (entry) => entries.push(entry)));
      return entries;
    },
    /** More than one only of votes, after an import that contradicts itself. */
    at: (head: Head, mark: number): Entry[] => at.all(head.id, mark).map((row) => read(head, row)),
    below: (head: Head, mark: number, limit: number) => below.all(head.id, mark, limit).map((row) => read(head, row)),
    lowestAfter: (head: Head, last: Entry | undefined, column: string): number | null =>
      numberOrNull(cellsOf(lowest.get(column)?.get(head.id, ...placeAfter(last)))[0]),
    /** Rows beyond the marks of the head are of another time than the head. */
    confirmNoneBeyond({ id, state }: Head): void {
      if (beyond.get(id, state.highest[kind.mark] ?? -1) !== undefined) {
        throw damaged('an entry lies beyond the marks');
      }
    },
    insert(id: number, entry: Entry, { code }: Pick<EntryCodes, 'code'>): void {
      insert.run(id, ...placeOf(entry), entry.signingRoot, code);
    },
    remove(id: number, entry: Entry): void {
      remove.run(id, ...placeOf(entry));
    },
  };
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
  const cells = ({ publicKey, state }: Head) => [...headNumbers(state), cellOf(codes.headCode(publicKey, state))];

  return {
    find(publicKey: Uint8Array): Head | undefined {
      const row: unknown = find.get(publicKey);
      if (!Array.isArray(row)) return undefined;
      const cell = requiredBytes(row[SEAL]);
      const [code, digests] = [cell.subarray(0, INTEGRITY_CODE_BYTES), cell.subarray(INTEGRITY_CODE_BYTES)];
      const state = codes.openHead(publicKey, row.slice(0, SEAL).map(numberOrNull), { code, digests });
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

/** The numbers in the order of `headNumbers`, and the cell of code and digests. */
const COLUMNS = [
  ...['high_slot', 'high_source_epoch', 'high_target_epoch'],
  ...['low_slot', 'low_source_epoch', 'low_target_epoch'],
  ...['pruned_slot', 'pruned_target_epoch', 'tenure', 'block_count', 'attestation_count', 'seal'],
];
const SEAL = COLUMNS.length - 1;

// One cell for all of it: code, digests, nonce. Each cell of bytes costs an object a read.
const cellOf = ({ code, digests }: HeadCode): Uint8Array => Buffer.concat([code, digests]);

export function inTransaction<Result>(connection: DatabaseSync, work: (open: DatabaseSync) => Result): Result {
  connection.exec('BEGIN IMMEDIATE');
  try {
    const result = work(connection);
    connection.exec('COMMIT');
    return result;
  } catch (error) {
    if (connection.isTransaction) connection.exec('ROLLBACK');
    throw error;
  }
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

export function requiredBytes(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw damaged('bytes are missing');
  return value;
}

export function bytesOrNull(value: unknown): Uint8Array | null {
  return value === null ? null : requiredBytes(value);
}

export function cellsOf(row: unknown): readonly SQLOutputValue[] {
  if (!Array.isArray(row)) throw new TypeError('the statement returns arrays');
  return row;
}

// Extended result codes of SQLite (sqlite.org/rescode.html): SQLite holds a row that the head does not count.
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
  const code = primaryCode(error);
  return code !== undefined && code !== SQLITE_BUSY && code !== SQLITE_FULL;
}

export function isBusy(error: unknown): boolean {
  return primaryCode(error) === SQLITE_BUSY;
}

function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}
