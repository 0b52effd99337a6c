// What clients get of the storage: its files, and from them the proof that a kept head covers an entry (RFC 9162
// §2.1.3). Apart from the log, because it is of logs of earlier starts too. It trusts no tile: a proof from other ones
// does not hold, and whoever asked for it notices.

import { readHead } from '../../common/receipts/head.ts';
import { CHECKPOINT, decodeBundle, tilePath } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, inclusionProof, nodesOfTiles, TILE_WIDTH } from '../../common/receipts/tree.ts';
import { hashLeaves } from './bundle-hash.ts';
import type { ReceiptStorage } from './storage.ts';

export interface Inclusion {
  /** The note of the head that the proof leads to. */
  readonly head: string;
  readonly entry: Buffer;
  readonly proof: readonly Buffer[];
}

/** The hashes of level 0 are in the storage only where their entries were removed: else they follow from these. */
export async function readShown(
  storage: Pick<ReceiptStorage, 'read'>,
  boot: string,
  path: string,
): Promise<Buffer | undefined> {
  const content = await storage.read(boot, path);
  if (content !== undefined || !path.startsWith('tile/0/')) return content;
  const bundle = await storage.read(boot, path.replace('/0/', '/entries/'));
  return bundle === undefined ? undefined : hashLeaves(bundle);
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
