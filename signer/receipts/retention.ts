// Entries that are older than `receipts.retention_days` leave the storage, tile by tile, and their hashes take their
// place: every head is verified as before (specification/receipts.md#retention). It removes nothing before a head that
// is kept says so. It believes the heads of the storage: a person who can forge one there can remove the entries, too.

import type { Log } from '../../common/observe/log.ts';
import { type ReadHead, readHead, removableBefore } from '../../common/receipts/head.ts';
import { CHECKPOINT, headPath, tilePath } from '../../common/receipts/tiles.ts';
import { TILE_WIDTH } from '../../common/receipts/tree.ts';
import { hashLeaves } from './bundle-hash.ts';
import type { ReceiptStorage } from './storage.ts';

/** Of one call: 65,536 decisions. A clock that is wrong removes no log at once. */
const MAX_TILES = 256;

/** Of all boots, those with the latest heads first. It never rejects. @param latestHead the note of the last one */
export async function removeOldEntries(
  storage: ReceiptStorage,
  latestHead: string | undefined,
  log: Log,
): Promise<void> {
  const latest = readHead(latestHead ?? '');
  const before = latest === undefined ? null : removableBefore(latest.statement);
  if (before === null) return;
  let left = MAX_TILES;
  try {
    for (const boot of await storage.boots()) {
      left -= await removeTiles(storage, boot, { before, most: left }).catch((err: unknown) => {
        log.warn({ err, boot }, 'receipts: old entries of a boot are not removed');
        return 0;
      });
    }
  } catch (err) {
    log.warn({ err }, 'receipts: old entries are not removed');
  }
}

async function removeTiles(
  storage: ReceiptStorage,
  boot: string,
  { before, most }: { readonly before: number; readonly most: number },
): Promise<number> {
  const end = Math.floor((await sizeAt(storage, boot, before)) / TILE_WIDTH);
  const kept = await firstOf(end, async (tile) => (await storage.read(boot, hashesPath(tile))) === undefined);
  // The one before it may have its hashes, and its entries still.
  const begin = Math.max(0, kept - 1);
  const tiles = Array.from({ length: Math.max(0, Math.min(end - begin, most)) }, (_, at) => begin + at);
  for (const tile of tiles) {
    const path = tilePath('entries', tile, TILE_WIDTH);
    const bundle = await storage.read(boot, path);
    if (bundle === undefined) continue;
    await storage.write(boot, [{ path: hashesPath(tile), content: hashLeaves(bundle) }]);
    await storage.remove(boot, [path]);
  }
  return tiles.length;
}

function hashesPath(tile: number): string {
  return tilePath(0, tile, TILE_WIDTH);
}

/** Of the last head that is no later. */
async function sizeAt(storage: ReceiptStorage, boot: string, before: number): Promise<number> {
  const headAt = async (path: string): Promise<ReadHead> => {
    const head = readHead((await storage.read(boot, path))?.toString('utf8') ?? '');
    if (head?.boot !== boot) throw new Error(`the storage has no ${path} of the boot ${boot}`);
    return head;
  };
  const isLater = async (sequence: number): Promise<boolean> =>
    (await headAt(headPath(sequence))).statement.time > before;
  if (await isLater(0)) return 0; // most boots, so that they cost one call
  const { sequence } = (await headAt(CHECKPOINT)).statement;
  return (await headAt(headPath((await firstOf(sequence + 1, isLater)) - 1))).size;
}

/** The first number below the end for which it is so, as it is for all behind it; else the end. */
async function firstOf(end: number, isSo: (number: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isSo(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
