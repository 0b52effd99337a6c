// The proofs of RFC 9162 as a client makes them of tiles, and verifies them: a signer serves tiles, and no proofs.

import { readHead } from '../../common/receipts/head.ts';
import { CHECKPOINT, decodeBundle, tilePath } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, nodeHash, perfectRoot, TILE_WIDTH } from '../../common/receipts/tree.ts';
import { readShown } from '../../signer/receipts/shown.ts';
import type { ReceiptStorage } from '../../signer/receipts/storage.ts';

const TILE_LEVELS = 8;

/** The hash of the perfect subtree over leaves index · 2^level to (index + 1) · 2^level − 1, which are all there. */
export type NodeReader = (level: number, index: number) => Buffer;

/** Nodes of a tree whose tiles are at hand. @param tile its hashes, as many as there are */
export function nodesOfTiles(tile: (level: number, index: number) => readonly Buffer[]): NodeReader {
  return (level, index) => {
    const tileLevel = Math.floor(level / TILE_LEVELS);
    const width = 2 ** (level % TILE_LEVELS);
    const first = index * width;
    const at = first % TILE_WIDTH;
    const hashes = tile(tileLevel, Math.floor(first / TILE_WIDTH)).slice(at, at + width);
    if (hashes.length !== width) throw new RangeError('a tile has fewer hashes than the tree has');
    return perfectRoot(Buffer.concat(hashes));
  };
}

/** RFC 9162 §2.1.3.1 @throws RangeError for a leaf that the tree does not have */
export function inclusionProof(index: number, size: number, node: NodeReader): Buffer[] {
  if (!(index >= 0 && index < size)) throw new RangeError('no leaf of this tree');
  const proof: Buffer[] = [];
  let low = 0;
  let high = size;
  while (high - low > 1) {
    const middle = low + splitOf(high - low);
    const goesLeft = index < middle;
    proof.push(goesLeft ? rangeRoot(middle, high, node) : rangeRoot(low, middle, node));
    if (goesLeft) high = middle;
    else low = middle;
  }
  return proof.toReversed();
}

export function rangeRoot(low: number, high: number, node: NodeReader): Buffer {
  const width = high - low;
  const split = splitOf(width);
  // A range of these proofs begins at a multiple of its perfect width.
  if (width === 1 || split * 2 === width) return node(Math.round(Math.log2(width)), low / width);
  return nodeHash(rangeRoot(low, low + split, node), rangeRoot(low + split, high, node));
}

/** RFC 9162 §2.1.1: the largest power of two that is smaller; of one, one. */
export function splitOf(width: number): number {
  let split = 1;
  while (split * 2 < width) split *= 2;
  return split;
}

export interface Inclusion {
  /** The note of the head that the proof leads to. */
  readonly head: string;
  readonly entry: Buffer;
  readonly proof: readonly Buffer[];
}

/**
 * Of the latest head that is kept. Undefined: there is no such log, the head does not cover such an entry, or it was
 * removed.
 * @throws what the storage throws, and Error when it lacks a tile
 */
export async function proveInclusion(
  storage: Pick<ReceiptStorage, 'read'>,
  boot: string,
  index: number,
): Promise<Inclusion | undefined> {
  const note = (await storage.read(boot, CHECKPOINT))?.toString('utf8');
  const size = note === undefined ? undefined : readHead(note)?.size;
  if (note === undefined || size === undefined || index >= size) return undefined;
  if ((await storage.read(boot, tilePath(0, Math.floor(index / TILE_WIDTH), TILE_WIDTH))) !== undefined)
    return undefined;
  const entries = decodeBundle(await readTile(storage, boot, { level: 'entries', size, at: index }));
  const entry = entries?.[index % TILE_WIDTH];
  if (entry === undefined) throw new Error(`the bundle of entry ${index} of the boot ${boot} is no bundle`);
  const tiles = new Map<string, readonly Buffer[]>();
  let [own, edge] = [index, size];
  for (let level = 0; edge > 0; level++) {
    const places = new Set([Math.floor(own / TILE_WIDTH), Math.floor(edge / TILE_WIDTH)]);
    for (const place of places) {
      if (place * TILE_WIDTH >= edge) continue;
      const tile = await readTile(storage, boot, { level, size: edge, at: place * TILE_WIDTH });
      tiles.set(`${level}/${place}`, hashesOf(tile.subarray(0, (edge - place * TILE_WIDTH) * HASH_BYTES)));
    }
    [own, edge] = [Math.floor(own / TILE_WIDTH), Math.floor(edge / TILE_WIDTH)];
  }
  const nodes = nodesOfTiles((level, place) => tiles.get(`${level}/${place}`) ?? []);
  return { head: note, entry, proof: inclusionProof(index, size, nodes) };
}

interface Wanted {
  readonly level: number | 'entries';
  /** How many of its level there are. */
  readonly size: number;
  readonly at: number;
}

/** One that was not full when the head was made may be full by now: then the full one begins with it. */
async function readTile(
  storage: Pick<ReceiptStorage, 'read'>,
  boot: string,
  { level, size, at }: Wanted,
): Promise<Buffer> {
  const index = Math.floor(at / TILE_WIDTH);
  const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
  const path = tilePath(level, index, width);
  const tile =
    (await readShown(storage, boot, path)) ?? (await readShown(storage, boot, tilePath(level, index, TILE_WIDTH)));
  if (tile === undefined) throw new Error(`the storage of receipts lacks ${path} of the boot ${boot}`);
  return tile;
}

function hashesOf(tile: Buffer): Buffer[] {
  const count = Math.floor(tile.length / HASH_BYTES);
  return Array.from({ length: count }, (_, index) => tile.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES));
}

/** RFC 9162 §2.1.4.1 @throws RangeError when the first is no tree of this one's begin */
export function consistencyProof(first: number, size: number, node: NodeReader): Buffer[] {
  if (!(first > 0 && first <= size)) throw new RangeError('no begin of this tree');
  const proof: Buffer[] = [];
  let low = 0;
  let high = size;
  while (first !== high) {
    const middle = low + splitOf(high - low);
    const goesLeft = first <= middle;
    proof.push(goesLeft ? rangeRoot(middle, high, node) : rangeRoot(low, middle, node));
    if (goesLeft) high = middle;
    else low = middle;
  }
  if (low > 0) proof.push(rangeRoot(low, high, node));
  return proof.toReversed();
}

/** RFC 9162 §2.1.3.2 */
export function provesInclusion(
  entryHash: Uint8Array,
  index: number,
  { size, root }: TreeState,
  proof: readonly Uint8Array[],
): boolean {
  if (!isCount(index) || !isCount(size) || index >= size) return false;
  let [leaf, last, hash] = [index, size - 1, entryHash];
  for (const part of proof) {
    if (last === 0) return false;
    if (leaf % 2 === 1 || leaf === last) {
      hash = nodeHash(part, hash);
      [leaf, last] = withoutZeros(leaf, last);
    } else {
      hash = nodeHash(hash, part);
    }
    [leaf, last] = [half(leaf), half(last)];
  }
  return last === 0 && Buffer.compare(hash, root) === 0;
}

interface TreeState {
  readonly size: number;
  readonly root: Uint8Array;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function half(value: number): number {
  return Math.floor(value / 2);
}

function withoutZeros(leaf: number, last: number): [number, number] {
  let [a, b] = [leaf, last];
  while (a % 2 === 0 && a !== 0) [a, b] = [half(a), half(b)];
  return [a, b];
}
