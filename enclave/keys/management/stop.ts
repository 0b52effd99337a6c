// Takes keys out of service on this replica: the first step of deleting a key and of making it inactive. Inside, none
// of them signs here and nothing can bring one back: not a refresh of the key table (withheld), not an import (its turn
// comes later). A key file that is put there in these moments and read by a reload could; what it then signs comes
// before the retirement, and so into the file. It does not bind other replicas.

import type { LoadedKey } from '../loaded-key.ts';
import type { KeyManagementParts } from './management.ts';

/**
 * Do the work while the keys are stopped; afterwards the next look at the table loads what the rows say. The caller
 * holds the turn of these keys.
 * @param work gets the copies that were taken out, of those keys that were loaded
 */
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
