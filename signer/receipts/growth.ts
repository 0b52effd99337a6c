// The tree of one log as it grows, bundle by bundle: one decision of 256 pays for the hashes of all, which take less
// time than one signature. Nothing here waits for a storage.

import { type EntryBundle, tilePath } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, TILE_WIDTH, TreeEdge } from '../../common/receipts/tree.ts';
import { fastestBundleRoot, hashLeaves } from './bundle-hash.ts';
import type { ReceiptFile } from './storage.ts';

/** Of a full tile. */
export interface FullFile extends ReceiptFile {
  /** The entries that go out of memory with it; null in a file of hashes. */
  readonly bundle: EntryBundle | null;
}

export interface PartialFile extends ReceiptFile {
  /** The size of the log that makes its tile full: then that one says more. */
  readonly fullAt: number;
}

/** The tree over all bundles that were full, and one that is not. */
interface GrownTree {
  readonly size: number;
  readonly root: Buffer;
  readonly partials: readonly PartialFile[];
}

export class Growth {
  readonly #onFile: (file: FullFile) => void;
  readonly #rootOf = fastestBundleRoot();
  readonly #edge = new TreeEdge(({ level, index, hashes }) =>
    this.#onFile({ path: tilePath(level, index, TILE_WIDTH), content: Buffer.concat(hashes), bundle: null }),
  );

  /** @param onFile gets the files of a full tile in one turn of the event loop */
  constructor(onFile: (file: FullFile) => void) {
    this.#onFile = onFile;
  }

  /** Entries of the full tiles. */
  get size(): number {
    return this.#edge.size;
  }

  /** @param bundle of a full tile */
  append(bundle: EntryBundle): void {
    const content = bundle.bytes;
    const root = this.#rootOf(content);
    const index = this.#edge.size / TILE_WIDTH;
    this.#onFile({ path: tilePath('entries', index, TILE_WIDTH), content, bundle });
    this.#edge.appendTile(root);
  }

  /** Of all bundles so far and this one, which is not full. */
  tree(bundle: Buffer): GrownTree {
    return treeOf(this.#edge.copy(), bundle);
  }
}

function treeOf(edge: TreeEdge, bundle: Buffer): GrownTree {
  const leaves = hashLeaves(bundle);
  const tiles = edge.size / TILE_WIDTH;
  for (let at = 0; at < leaves.length; at += HASH_BYTES) edge.append(leaves.subarray(at, at + HASH_BYTES));
  const { size } = edge;
  // From level 1 on: those of level 0 are the entries' (shown.ts).
  const files = Array.from({ length: edge.levels - 1 }, (_, below): PartialFile => {
    const level = below + 1;
    const width = TILE_WIDTH ** (level + 1);
    const index = Math.floor(size / width);
    const hashes = edge.partial(level);
    const path = tilePath(level, index, hashes.length);
    return { path, content: Buffer.concat(hashes), fullAt: (index + 1) * width };
  }).filter(({ content }) => content.length > 0);
  const count = leaves.length / HASH_BYTES;
  const entries = { path: tilePath('entries', tiles, count), content: bundle, fullAt: (tiles + 1) * TILE_WIDTH };
  return { size, root: edge.root(), partials: count > 0 ? [...files, entries] : files };
}
