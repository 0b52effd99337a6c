// The heads of the signing histories: one row a key with its marks, the number of its entries and their digest.
// A head is believed only when its integrity code is right; a head that is missing is believed only while the database
// holds as many heads as were ever made.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { SignerError } from '../../api/errors.ts';
import type { LowWaterMarks } from '../history/carried-entries.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import type { HighWaterMarks } from '../types.ts';

/** One key's head. Changed in place by the entry tables, then saved. */
export interface Validator {
  /** 0 until it is saved first. */
  id: number;
  readonly publicKey: Uint8Array;
  lowSlot: number | null;
  highSlot: number | null;
  lowSourceEpoch: number | null;
  lowTargetEpoch: number | null;
  highSourceEpoch: number | null;
  highTargetEpoch: number | null;
  blockCount: number;
  /** XOR of the integrity codes of all its blocks. */
  blockDigest: Uint8Array;
  attestationCount: number;
  attestationDigest: Uint8Array;
}

export interface ValidatorTable {
  /** @throws SignerError slashing_integrity when the row fails its check */
  find(publicKey: Uint8Array): Validator | undefined;
  findById(id: number): Validator | undefined;
  save(validator: Validator): void;
}

export function newValidator(publicKey: Uint8Array): Validator {
  return {
    id: 0,
    publicKey,
    lowSlot: null,
    highSlot: null,
    lowSourceEpoch: null,
    lowTargetEpoch: null,
    highSourceEpoch: null,
    highTargetEpoch: null,
    blockCount: 0,
    blockDigest: new Uint8Array(16),
    attestationCount: 0,
    attestationDigest: new Uint8Array(16),
  };
}

export function validatorTable(connection: DatabaseSync, integrity: RowIntegrity): ValidatorTable {
  const byKey = connection.prepare(
    `SELECT id, public_key, ${COLUMNS.join(', ')}, code FROM validators WHERE public_key = ?`,
  );
  const byId = connection.prepare(`SELECT id, public_key, ${COLUMNS.join(', ')}, code FROM validators WHERE id = ?`);
  const insert = connection.prepare(
    `INSERT INTO validators (id, public_key, ${COLUMNS.join(', ')}, code) VALUES (?, ?, ${COLUMNS.map(() => '?').join(', ')}, ?)`,
  );
  const update = connection.prepare(
    `UPDATE validators SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')}, code = ? WHERE id = ?`,
  );
  const lastId = connection.prepare('SELECT max(id) FROM validators');
  for (const statement of [byKey, byId, lastId]) statement.setReturnArrays(true);

  function read(row: unknown): Validator | undefined {
    if (!Array.isArray(row)) return undefined;
    const validator = fromRow(row);
    const code = bytesOf(row[row.length - 1]);
    if (!integrity.verify(code, 'validator', validator.publicKey, fieldsOf(validator))) throw damaged('validator');
    return validator;
  }

  return {
    find: (publicKey) => read(byKey.get(publicKey)),
    findById: (id) => read(byId.get(id)),
    save(validator) {
      const isNew = validator.id === 0;
      // The code covers the id, so it is chosen here and not by the database.
      if (isNew) validator.id = ((lastId.get() as unknown as [number | null])[0] ?? 0) + 1;
      const [id, ...columns] = fieldsOf(validator);
      const code = integrity.code('validator', validator.publicKey, [validator.id, ...columns]);
      if (isNew) insert.run(validator.id, validator.publicKey, ...columns, code);
      else update.run(...columns, code, id ?? null);
    },
  };
}

export function marksOf(validator: Validator): HighWaterMarks {
  return {
    blockSlot: validator.highSlot,
    sourceEpoch: validator.highSourceEpoch,
    targetEpoch: validator.highTargetEpoch,
  };
}

export function lowWaterOf({ lowSlot, lowSourceEpoch, lowTargetEpoch }: Validator): LowWaterMarks {
  return { slot: lowSlot, sourceEpoch: lowSourceEpoch, targetEpoch: lowTargetEpoch };
}

export function damaged(row: string): SignerError {
  return new SignerError('slashing_integrity', { detail: { row } });
}

export function numberOf(value: SQLOutputValue | undefined): number {
  if (typeof value !== 'number') throw damaged('a number is missing');
  return value;
}

export function bytesOf(value: SQLOutputValue | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw damaged('bytes are missing');
  return value;
}

export function bytesOrNull(value: SQLOutputValue | undefined): Uint8Array | null {
  return value === null ? null : bytesOf(value);
}

const COLUMNS = [
  'low_slot',
  'high_slot',
  'low_source_epoch',
  'low_target_epoch',
  'high_source_epoch',
  'high_target_epoch',
  'block_count',
  'block_digest',
  'attestation_count',
  'attestation_digest',
];

/** The id and then the columns, in the order of COLUMNS. */
function fieldsOf(validator: Validator): (number | null | Uint8Array)[] {
  return [
    validator.id,
    validator.lowSlot,
    validator.highSlot,
    validator.lowSourceEpoch,
    validator.lowTargetEpoch,
    validator.highSourceEpoch,
    validator.highTargetEpoch,
    validator.blockCount,
    validator.blockDigest,
    validator.attestationCount,
    validator.attestationDigest,
  ];
}

function fromRow(row: readonly SQLOutputValue[]): Validator {
  return {
    id: numberOf(row[0]),
    publicKey: bytesOf(row[1]),
    lowSlot: numberOrNull(row[2]),
    highSlot: numberOrNull(row[3]),
    lowSourceEpoch: numberOrNull(row[4]),
    lowTargetEpoch: numberOrNull(row[5]),
    highSourceEpoch: numberOrNull(row[6]),
    highTargetEpoch: numberOrNull(row[7]),
    blockCount: numberOf(row[8]),
    blockDigest: bytesOf(row[9]),
    attestationCount: numberOf(row[10]),
    attestationDigest: bytesOf(row[11]),
  };
}

function numberOrNull(value: SQLOutputValue | undefined): number | null {
  return value === null ? null : numberOf(value);
}
