// Whole entries and bundles of them as bytes, for readers of a log and tests: a signer writes its entries straight into
// the bundle of their tile.

import { MAX_ENTRY_BYTES, type ReceiptEntry, writeEntry } from './entry.ts';

/** @throws RangeError for a member that has no place in an entry: a bug of the caller */
export function encodeEntry(entry: ReceiptEntry): Buffer {
  const bytes = Buffer.alloc(MAX_ENTRY_BYTES);
  return bytes.subarray(0, writeEntry(entry, entry.timeMs, bytes, 0));
}

/** @param entries of one tile: at most 256 */
export function encodeBundle(entries: readonly Uint8Array[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(entry.length);
    return [length, entry];
  });
  return Buffer.concat(parts);
}
