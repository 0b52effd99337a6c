// What clients get of the storage: its files, of logs of earlier starts too. It trusts none: a client verifies them.

import { hashLeaves } from './bundle-hash.ts';
import type { ReceiptStorage } from './storage.ts';

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
