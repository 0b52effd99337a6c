// Values of Web3Signer's columns. What no signer writes is refused, with its place and without repeating it.

import { Web3SignerDatabaseError } from './schema.ts';

const REMEDY = 'find out who wrote it: a record that is wrong in one place is not believed in others';

/** NUMERIC(20), as text. @throws Web3SignerDatabaseError beyond 2^53 - 1, as for interchange files */
export function readNumber(value: unknown, place: string): number {
  const isDecimal = typeof value === 'string' && /^[0-9]{1,20}$/.test(value);
  const number = isDecimal ? Number(value) : Number.NaN;
  if (number > Number.MAX_SAFE_INTEGER) throw new Web3SignerDatabaseError(`${place} is larger than 2^53 - 1`, REMEDY);
  if (!Number.isSafeInteger(number)) throw new Web3SignerDatabaseError(`${place} is not a whole number`, REMEDY);
  return number;
}

/** BYTEA. */
export function readBytes(value: unknown, length: number, place: string): Uint8Array {
  if (value instanceof Uint8Array && value.length === length) return value;
  throw new Web3SignerDatabaseError(`${place} is not ${length} bytes`, REMEDY);
}
