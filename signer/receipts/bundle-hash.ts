// The hashes of one bundle of entries (RFC 9162 §2.1.1), for the thread beside the signer and in its place. It trusts a
// bundle that the log made, and refuses bytes of another form.

import { decodeBundle } from '../../common/receipts/tiles.ts';
import { leafHash, perfectRoot, TILE_WIDTH } from '../../common/receipts/tree.ts';

export interface BundleHashes {
  /** Of its leaves, one after the other: the tile of level 0. */
  readonly leaves: Uint8Array<ArrayBuffer>;
  /** Of the perfect subtree over a whole tile; undefined of fewer entries. */
  readonly root: Uint8Array<ArrayBuffer> | undefined;
}

/** @throws RangeError for bytes that are no bundle */
export function hashLeaves(bundle: Uint8Array): Buffer[] {
  const hashes = decodeBundle(bundle)?.map(leafHash);
  if (hashes === undefined) throw new RangeError('no bundle');
  return hashes;
}

/** @throws RangeError for bytes that are no bundle */
export function hashBundle(bundle: Uint8Array): BundleHashes {
  const hashes = hashLeaves(bundle);
  // Each in memory of its own, which can go to another thread.
  const leaves = new Uint8Array(Buffer.concat(hashes));
  return { leaves, root: hashes.length === TILE_WIDTH ? new Uint8Array(perfectRoot(hashes)) : undefined };
}
