// A whole entry as bytes: a signer writes its entries straight into the bundle of their tile.

import { MAX_ENTRY_BYTES, type ReceiptEntry, writeEntry } from '../../common/receipts/entry.ts';

/** @throws RangeError for a member that has no place in an entry */
export function encodeEntry(entry: ReceiptEntry): Buffer {
  const bytes = Buffer.alloc(MAX_ENTRY_BYTES);
  return bytes.subarray(0, writeEntry(entry, entry.timeMs, bytes, 0));
}
