// The hashes of one bundle of entries (RFC 9162 §2.1.1). It trusts a bundle that the log made, and refuses bytes of
// another form.

import { decodeBundle } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, leafHashes, perfectRoot, TILE_WIDTH } from '../../common/receipts/tree.ts';
import type { Addon } from '../native/load.ts';

/** Of its leaves, one after the other. @throws RangeError for bytes that are no bundle */
export function hashLeaves(bundle: Uint8Array): Buffer {
  const entries = decodeBundle(bundle);
  if (entries === undefined) throw new RangeError('no bundle');
  return leafHashes(entries);
}

/** Of the perfect subtree over a full bundle. @throws RangeError for bytes that are no full bundle */
export type BundleRoot = (bundle: Uint8Array) => Buffer;

/** @param addon undefined: the same hashes take three times as long */
export function bundleRoot(addon: Pick<Addon, 'bundleRoot'> | undefined): BundleRoot {
  if (addon === undefined) return rootInScript;
  return (bundle) => {
    const root = Buffer.alloc(HASH_BYTES);
    addon.bundleRoot(bundle, root);
    return root;
  };
}

function rootInScript(bundle: Uint8Array): Buffer {
  const leaves = hashLeaves(bundle);
  if (leaves.length !== TILE_WIDTH * HASH_BYTES) throw new RangeError('no full bundle');
  return perfectRoot(leaves);
}
