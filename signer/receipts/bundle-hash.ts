// The hashes of one bundle of entries (RFC 9162 §2.1.1), for the thread beside the signer and in its place. It trusts a
// bundle that the log made, and refuses bytes of another form.

import { decodeBundle } from '../../common/receipts/tiles.ts';
import { leafHashes, perfectRoot } from '../../common/receipts/tree.ts';

/** Of its leaves, one after the other. @throws RangeError for bytes that are no bundle */
export function hashLeaves(bundle: Uint8Array): Buffer {
  const entries = decodeBundle(bundle);
  if (entries === undefined) throw new RangeError('no bundle');
  return leafHashes(entries);
}

/** Of the perfect subtree over a full bundle. @throws RangeError for bytes that are no bundle */
export function rootOfBundle(bundle: Uint8Array): Uint8Array {
  return new Uint8Array(perfectRoot(hashLeaves(bundle)));
}
