// Takes keys out of service on this replica. What a key signs in these moments comes before the retirement, and so into
// the file.

import type { LoadedKey } from '../loaded-key.ts';
import type { KeyManagementParts } from './management.ts';

/** The caller holds the turn of these keys. */
export async function whileStopped<T>(
  publicKeys: readonly string[],
  { store, table, drain }: Pick<KeyManagementParts, 'store' | 'table' | 'drain'>,
  work: (takenOut: ReadonlyMap<string, LoadedKey>) => Promise<T>,
): Promise<T> {
  const release = table?.loader.withhold(publicKeys);
  try {
    const takenOut = new Map<string, LoadedKey>();
    for (const publicKey of publicKeys) {
      const key = store.remove(publicKey);
      if (key !== undefined) takenOut.set(publicKey, key);
    }
    // Also of those that were not found: a look at the table may have removed them a moment ago.
    await drain(publicKeys);
    return await work(takenOut);
  } finally {
    release?.();
  }
}
