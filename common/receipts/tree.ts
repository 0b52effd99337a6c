// The Merkle tree of RFC 9162 with SHA-256: hashes, and its right edge. It trusts the hashes that
// it is given. Numbers are at most 2^53 − 1, so halves are taken by division, never by shifts of 32 bits.

import { hash } from 'node:crypto';

/** A tile is this many hashes of one level, of 8 levels at once (C2SP tlog-tiles). */
export const TILE_WIDTH = 256;
const TILE_LEVELS = 8;
export const HASH_BYTES = 32;
const EMPTY_ROOT: Buffer = hash('sha256', '', 'buffer');

/** RFC 9162 §2.1.1 */
export function leafHash(entry: Uint8Array): Buffer {
  return leafHashes([entry]);
}

/** Of each entry, one after the other. */
export function leafHashes(entries: readonly Uint8Array[]): Buffer {
  const hashes = Buffer.alloc(entries.length * HASH_BYTES);
  const leaf = Buffer.alloc(1 + Math.max(0, ...entries.map(({ length }) => length)));
  for (const [index, entry] of entries.entries()) {
    leaf.set(entry, 1);
    putHash(leaf.subarray(0, 1 + entry.length), hashes, index * HASH_BYTES);
  }
  return hashes;
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return perfectRoot(Buffer.concat([left, right]));
}

/** By way of a text, which costs a third: a buffer of Node's own is memory apart from the heap. */
function putHash(bytes: Uint8Array, target: Buffer, at: number): void {
  target.write(hash('sha256', bytes, 'latin1'), at, 'latin1');
}

interface FullTile {
  /** Of tiles: its hashes are of level 8 times this. */
  readonly level: number;
  readonly index: number;
  readonly hashes: readonly Buffer[];
}

/**
 * The right edge of a tree that grows: the last, not yet full tile of each level, so at most 255 hashes a level. 10^7
 * leaves have three levels.
 */
export class TreeEdge {
  readonly #onTile: ((tile: FullTile) => void) | undefined;
  readonly #levels: Buffer[][] = [];
  #size = 0;

  /** @param onTile gets each tile in the turn in which it is full */
  constructor(onTile?: (tile: FullTile) => void) {
    this.#onTile = onTile;
  }

  get size(): number {
    return this.#size;
  }

  append(hash: Buffer): void {
    this.#size += 1;
    this.#push(0, hash);
  }

  /** 256 leaves whose tile is kept elsewhere. @param root of their perfect subtree */
  appendTile(root: Buffer): void {
    if (this.#size % TILE_WIDTH !== 0) throw new RangeError('the tile before is not full');
    this.#levels[0] ??= [];
    this.#size += TILE_WIDTH;
    this.#push(1, root);
  }

  /** Grows apart from this one, without a reader of tiles. */
  copy(): TreeEdge {
    const copy = new TreeEdge();
    copy.#size = this.#size;
    for (const [level, hashes] of this.#levels.entries()) copy.#levels[level] = [...hashes];
    return copy;
  }

  root(): Buffer {
    if (this.#size === 0) return EMPTY_ROOT;
    const peaks = this.#levels.toReversed().flatMap(perfectParts);
    return peaks.reduceRight((right, left) => nodeHash(left, right));
  }

  /** The hashes of the tile that is not yet full; empty when there is none. */
  partial(level: number): readonly Buffer[] {
    return [...(this.#levels[level] ?? [])];
  }

  /** Levels with a tile that is not yet full, or were ever reached. */
  get levels(): number {
    return this.#levels.length;
  }

  #push(level: number, hash: Buffer): void {
    const hashes = this.#levels[level] ?? [];
    this.#levels[level] = hashes;
    hashes.push(hash);
    if (hashes.length < TILE_WIDTH) return;
    this.#levels[level] = [];
    const index = Math.floor(this.#size / TILE_WIDTH ** (level + 1)) - 1;
    this.#onTile?.({ level, index, hashes });
    this.#push(level + 1, perfectRoot(Buffer.concat(hashes)));
  }
}

/** Roots of the perfect subtrees of one tile, left to right: one for each bit of its width. */
function perfectParts(hashes: readonly Buffer[]): Buffer[] {
  const roots: Buffer[] = [];
  let at = 0;
  for (let bit = TILE_LEVELS - 1; bit >= 0; bit--) {
    const width = 2 ** bit;
    if ((hashes.length & width) === 0) continue;
    roots.push(perfectRoot(Buffer.concat(hashes.slice(at, at + width))));
    at += width;
  }
  return roots;
}

/** @param hashes one after the other, as many as a power of two */
export function perfectRoot(hashes: Uint8Array): Buffer {
  const row = Buffer.from(hashes);
  const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);
  for (let end = row.length; end > HASH_BYTES; end /= 2) {
    for (let at = 0; at < end; at += 2 * HASH_BYTES) {
      row.copy(node, 1, at, at + 2 * HASH_BYTES);
      putHash(node, row, at / 2);
    }
  }
  return Buffer.from(row.subarray(0, HASH_BYTES));
}
