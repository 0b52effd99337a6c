// The proof that a kept head covers an entry, from the tiles of the storage (RFC 9162 §2.1.3), apart from the log,
// because it is of logs of earlier starts too. It trusts no tile: a proof from other ones does not hold, and whoever
// asked for it notices.

import { readHead } from '../../common/receipts/head.ts';
import { CHECKPOINT, decodeBundle, tilePath } from '../../common/receipts/tiles.ts';
import { inclusionProof, nodesOfTiles, TILE_WIDTH } from '../../common/receipts/tree.ts';
import type { ReceiptStorage } from './storage.ts';

const HASH_BYTES = 32;

export interface Inclusion {
  /** The note of the head that the proof leads to. */
  readonly head: string;
  readonly entry: Buffer;
  readonly proof: readonly Buffer[];
}

/**
 * Of the latest head that is kept. Undefined: there is no such log, or the head does not cover such an entry.
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
  const tile = (await storage.read(boot, path)) ?? (await storage.read(boot, tilePath(level, index, TILE_WIDTH)));
  if (tile === undefined) throw new Error(`the storage of receipts lacks ${path} of the boot ${boot}`);
  return tile;
}

function hashesOf(tile: Buffer): Buffer[] {
  const count = Math.floor(tile.length / HASH_BYTES);
  return Array.from({ length: count }, (_, index) => tile.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES));
}
