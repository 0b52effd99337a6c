// The hashes of one bundle of entries (RFC 9162 §2.1.1). It trusts a bundle that the log made, and refuses bytes of
// another form.

import { decodeBundle } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, leafHashes, perfectRoot, TILE_WIDTH } from '../../common/receipts/tree.ts';
import { type Addon, loadAddon } from '../native/load.ts';

/** Of its leaves, one after the other. @throws RangeError for bytes that are no bundle */
export function hashLeaves(bundle: Uint8Array): Buffer {
  const entries = decodeBundle(bundle);
  if (entries === undefined) throw new RangeError('no bundle');
  return leafHashes(entries);
}

/** By the addon, in a third of the time, where it gives the roots of the script; a broken one stops no signer. */
export function fastestBundleRoot(load: () => Pick<Addon, 'bundleRoot'> | undefined = loadAddon): typeof rootInScript {
  try {
    const addon = load();
    const rootByAddon = (bundle: Uint8Array): Buffer => {
      const root = Buffer.alloc(HASH_BYTES);
      addon?.bundleRoot(bundle, root);
      return root;
    };
    if (rootByAddon(PROOF).equals(rootInScript(PROOF))) return rootByAddon;
  } catch {} // the BLS core, which it has too, says why (bls/open.ts)
  return rootInScript;
}

const PROOF = Buffer.alloc(TILE_WIDTH * 202, Uint8Array.of(0, 200, ...Array(200).keys()));

/** Of the perfect subtree over a full bundle. @throws RangeError for bytes that are no full bundle */
export function rootInScript(bundle: Uint8Array): Buffer {
  const leaves = hashLeaves(bundle);
  if (leaves.length !== TILE_WIDTH * HASH_BYTES) throw new RangeError('no full bundle');
  return perfectRoot(leaves);
}
