// The record of the store, one row under its integrity code. It says which keys have a head, as a number and a hash
// chain, so that a head that is gone is noticed, whatever row stands in its place.

import { hash } from 'node:crypto';
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { historyCodes, type IntegrityField, type RowIntegrity } from '../../history/codes.ts';
import { NO_INCARNATION } from '../../incarnation.ts';
import type { StoreFloor, StoreIdentity } from '../../types.ts';
import { damaged, numberOf, numberOrNull, requiredBytes } from './rows.ts';

export const SCHEMA_VERSION = 1;

export interface SqliteStoreRecord {
  readonly id: Uint8Array;
  readonly incarnation: string;
  readonly floor: StoreFloor | null;
  readonly keys: number;
  /** 32 bytes: each new key is hashed onto the hash of those before it, in the order of their ids. */
  readonly keysDigest: Uint8Array;
}

export type StoreRecords = ReturnType<typeof storeRecord>;

export function newRecord(id: Uint8Array): SqliteStoreRecord {
  return { id, incarnation: NO_INCARNATION, floor: null, keys: 0, keysDigest: NO_KEYS };
}

export function withKeys(record: SqliteStoreRecord, publicKeys: readonly Uint8Array[]): SqliteStoreRecord {
  const keysDigest = publicKeys.reduce(chained, record.keysDigest);
  return { ...record, keys: record.keys + publicKeys.length, keysDigest };
}

export function sqliteIdentity({ id, incarnation, floor }: SqliteStoreRecord): StoreIdentity {
  return { id: Buffer.from(id).toString('hex'), incarnation, floor };
}

export function storeRecord(
  connection: DatabaseSync,
  {
    genesisValidatorsRoot,
    integrity,
  }: { readonly genesisValidatorsRoot: Uint8Array; readonly integrity: RowIntegrity },
) {
  const codes = historyCodes(integrity);
  const kind = Buffer.from(integrity.kind);
  const select = connection.prepare(`SELECT ${COLUMNS.join(', ')}, code FROM metadata WHERE id = 1`);
  select.setReturnArrays(true);
  const update = connection.prepare(
    `UPDATE metadata SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')}, code = ? WHERE id = 1`,
  );
  const allKeys = connection.prepare('SELECT public_key FROM validators ORDER BY id');
  allKeys.setReturnArrays(true);
  const codeOf = (cells: readonly Cell[]): Uint8Array =>
    codes.storeCode([SCHEMA_VERSION, genesisValidatorsRoot, kind, ...cells.map(fieldOf)]);
  /** The last row that passed its check. Each batch reads the row; the same bytes again have the same code. */
  let believed: { readonly row: readonly SQLOutputValue[]; readonly record: SqliteStoreRecord } | undefined;

  return {
    /** @throws SignerError slashing_integrity when the row fails its check */
    read(): SqliteStoreRecord {
      const row: unknown = select.get();
      if (!Array.isArray(row)) throw damaged('the record of the store is missing');
      if (believed !== undefined && isSameRow(row, believed.row)) return believed.record;
      const cells = row.slice(0, COLUMNS.length) as Cell[];
      if (Buffer.compare(requiredBytes(row[COLUMNS.length]), codeOf(cells)) !== 0) throw damaged('metadata');
      const record = fromCells(cells);
      believed = { row, record };
      return record;
    },
    write(record: SqliteStoreRecord): void {
      const cells = cellsOf(record);
      update.run(...cells, codeOf(cells));
    },
    insert(record: SqliteStoreRecord): void {
      const cells = cellsOf(record);
      connection
        .prepare(
          `INSERT INTO metadata (id, schema_version, genesis_validators_root, integrity_kind, ${COLUMNS.join(', ')}, code)
           VALUES (1, ?, ?, ?, ${COLUMNS.map(() => '?').join(', ')}, ?)`,
        )
        .run(SCHEMA_VERSION, genesisValidatorsRoot, integrity.kind, ...cells, codeOf(cells));
    },
    /** Whether the heads are those of the keys that the record says. Reads every key: a commit asks `keyList`. */
    isWhole(record: SqliteStoreRecord, onKey?: (publicKey: Uint8Array) => void): boolean {
      let [keys, digest] = [0, NO_KEYS];
      for (const row of allKeys.iterate()) {
        const [publicKey] = row as unknown as [SQLOutputValue];
        if (!(publicKey instanceof Uint8Array) || ++keys > record.keys) return false;
        digest = chained(digest, publicKey);
        onKey?.(publicKey);
      }
      return keys === record.keys && Buffer.compare(digest, record.keysDigest) === 0;
    },
  };
}

function isSameRow(row: readonly SQLOutputValue[], other: readonly SQLOutputValue[]): boolean {
  for (let index = 0; index < other.length; index++) {
    const [cell, expected] = [row[index], other[index]];
    if (cell === expected) continue;
    if (!(cell instanceof Uint8Array && expected instanceof Uint8Array)) return false;
    if (Buffer.compare(cell, expected) !== 0) return false;
  }
  return row.length === other.length;
}

const NO_KEYS: Uint8Array = new Uint8Array(32);

function chained(digest: Uint8Array, publicKey: Uint8Array): Uint8Array {
  return hash('sha256', Buffer.concat([digest, publicKey]), 'buffer');
}

const COLUMNS = [
  'store_id',
  'incarnation',
  'floor_slot',
  'floor_source_epoch',
  'floor_target_epoch',
  'validator_count',
  'keys_digest',
];

type Cell = Uint8Array | number | string | null;

function cellsOf({ id, incarnation, floor, keys, keysDigest }: SqliteStoreRecord): Cell[] {
  return [
    ...[id, incarnation],
    ...[floor?.slot ?? null, floor?.sourceEpoch ?? null, floor?.targetEpoch ?? null],
    ...[keys, keysDigest],
  ];
}

/** The cells passed their code: this program wrote them. */
function fromCells(cells: readonly Cell[]): SqliteStoreRecord {
  const slot = numberOrNull(cells[2]);
  return {
    id: requiredBytes(cells[0]),
    incarnation: String(cells[1]),
    floor: slot === null ? null : { slot, sourceEpoch: numberOf(cells[3]), targetEpoch: numberOf(cells[4]) },
    keys: numberOf(cells[5]),
    keysDigest: requiredBytes(cells[6]),
  };
}

function fieldOf(cell: Cell): IntegrityField {
  return typeof cell === 'string' ? Buffer.from(cell) : cell;
}
