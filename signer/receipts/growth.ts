// The tree of one log as it grows, bundle by bundle, in the order in which the log hands them over. It is beside the
// path to an answer: nothing here waits for a storage, and no decision waits for this.

import { tilePath } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, TILE_WIDTH, TreeEdge } from '../../common/receipts/tree.ts';
import { hashLeaves } from './bundle-hash.ts';
import type { BundleHasher } from './bundle-hasher.ts';
import type { ReceiptFile } from './storage.ts';

/** Of a full tile. */
export interface FullFile extends ReceiptFile {
  /** Entries that go out of memory with it. */
  readonly entries: number;
}

export interface PartialFile extends ReceiptFile {
  /** The size of the log that makes its tile full: then that one says more. */
  readonly fullAt: number;
}

/** The tree over all bundles that were full, and one that is not. */
export interface GrownTree {
  readonly size: number;
  readonly root: Buffer;
  readonly partials: readonly PartialFile[];
}

export class Growth {
  readonly #hasher: BundleHasher;
  readonly #onFile: (file: FullFile) => void;
  readonly #edge = new TreeEdge(({ level, index, hashes }) =>
    this.#onFile({ path: tilePath(level, index, TILE_WIDTH), content: Buffer.concat(hashes), entries: 0 }),
  );
  /** What was handed over is done one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  /** @param onFile gets the files of a full tile in one turn of the event loop */
  constructor(hasher: BundleHasher, onFile: (file: FullFile) => void) {
    this.#hasher = hasher;
    this.#onFile = onFile;
  }

  /** Entries of the full tiles whose files were handed out. */
  get size(): number {
    return this.#edge.size;
  }

  /** @param bundle of a full tile */
  append(bundle: Buffer<ArrayBuffer>): void {
    const hashed = this.#hasher.hash(bundle);
    this.#turn = this.#turn.then(async () => {
      const root = Buffer.from(await hashed);
      const index = this.#edge.size / TILE_WIDTH;
      this.#onFile({ path: tilePath('entries', index, TILE_WIDTH), content: bundle, entries: TILE_WIDTH });
      this.#edge.appendTile(root);
    });
  }

  /** Of all bundles so far and this one, which is not full: few enough hashes for the main thread. */
  tree(bundle: Buffer<ArrayBuffer>): Promise<GrownTree> {
    const tree = this.#turn.then(() => treeOf(this.#edge.copy(), bundle));
    this.#turn = tree;
    return tree;
  }
}

function treeOf(edge: TreeEdge, bundle: Buffer): GrownTree {
  const leaves = hashLeaves(bundle);
  const tiles = edge.size / TILE_WIDTH;
  for (let at = 0; at < leaves.length; at += HASH_BYTES) edge.append(leaves.subarray(at, at + HASH_BYTES));
  const { size } = edge;
  // From level 1 on: those of level 0 are the entries' (inclusion.ts).
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
