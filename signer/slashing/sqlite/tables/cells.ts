// What a cell of a row may hold; anything else is damage, which makes 503 for whatever the row is about. And what an
// error of SQLite says: damage of a row, or a fault of the connection.

import type { SQLOutputValue } from 'node:sqlite';
import { SignerError } from '../../../api/errors.ts';

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
