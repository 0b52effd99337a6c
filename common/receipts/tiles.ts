// Where the parts of a log lie, and bundles of entries as bytes (C2SP tlog-tiles; specification/receipts.md#tiles). It
// refuses bundles of another form.

import { MAX_ENTRY_BYTES, type ReceiptEntry, writeEntry } from './entry.ts';
import { TILE_WIDTH } from './tree.ts';

const GROUP = 1000;
export const IDENTITY = 'identity';
export const CHECKPOINT = 'checkpoint';
/** Between the number of a tile and the width that it has so far. */
export const PARTIAL = '.p/';
const NUMBER = '(?:x[0-9]{3}/){0,5}[0-9]{3}';
const PATH = new RegExp(
  `^(?:identity|checkpoint|heads/${NUMBER}|tile/(?:[0-7]|entries)/${NUMBER}(?:[.]p/[0-9]{1,3})?)$`,
);

/** Whether a file of a log may have this path: no other is ever asked of a storage. */
export function isReceiptPath(path: string): boolean {
  return PATH.test(path);
}

/** 1234067 is x001/x234/067. */
function pathOfNumber(number: number): string {
  const last = String(number % GROUP).padStart(3, '0');
  let rest = Math.floor(number / GROUP);
  let path = last;
  while (rest > 0) {
    path = `x${String(rest % GROUP).padStart(3, '0')}/${path}`;
    rest = Math.floor(rest / GROUP);
  }
  return path;
}

/** @param width how many hashes or entries it has */
export function tilePath(level: number | 'entries', index: number, width: number): string {
  const partial = width === TILE_WIDTH ? '' : `${PARTIAL}${width}`;
  return `tile/${level}/${pathOfNumber(index)}${partial}`;
}

export function headPath(sequence: number): string {
  return `heads/${pathOfNumber(sequence)}`;
}

/** The entries of one tile as they come. It keeps bytes, and no objects that the garbage collector would move. */
export class EntryBundle {
  readonly #bytes = Buffer.from(new ArrayBuffer(TILE_WIDTH * (2 + MAX_ENTRY_BYTES)));
  #length = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** @throws RangeError as writeEntry() does, and for more entries than a tile has; then nothing is written */
  write(entry: Omit<ReceiptEntry, 'timeMs'>, timeMs: number): void {
    if (this.#count === TILE_WIDTH) throw new RangeError('no entry of a tile');
    const begin = this.#length + 2;
    const end = writeEntry(entry, timeMs, this.#bytes, begin);
    this.#bytes.writeUInt16BE(end - begin, this.#length);
    this.#length = end;
    this.#count += 1;
  }

  /** Its own memory, which the next entry after clear() is written over. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    this.#count = 0;
  }
}

/** Undefined for bytes that are no bundle, or of more entries than a tile has. */
export function decodeBundle(bytes: Uint8Array): Buffer[] | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: Buffer[] = [];
  let at = 0;
  while (at < buffer.length) {
    if (buffer.length < at + 2 || entries.length === TILE_WIDTH) return undefined;
    const end = at + 2 + buffer.readUInt16BE(at);
    if (buffer.length < end) return undefined;
    entries.push(buffer.subarray(at + 2, end));
    at = end;
  }
  return entries;
}
