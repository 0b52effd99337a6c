// Deletes keys. The order is what matters: the key is not found any more, its last signature is over, its row is gone, and only then
// its slashing protection records are read for whoever takes the key over.

import type { KeyManagementParts } from './management.ts';

export interface DeleteRequest {
  readonly publicKeys: readonly string[];
  /** Whether keys of the table are deleted too. Keys of files never are. */
  readonly fromTable: boolean;
}

export interface DeleteResult {
  readonly publicKey: string;
  readonly status: 'deleted' | 'not_found' | 'error';
  /** Of a key that is not here: whether there are slashing protection records of it. */
  readonly recorded: boolean;
  readonly message?: string;
}

/**
 * Delete keys, then export the slashing protection records of those that are deleted, or are not here: a request that is repeated gets
 * them again. No signature of these keys is released afterwards that is not in the file.
 * @throws SignerError slashing_*, `key_table_unavailable`: keys may be gone then; repeating the request gives their records
 */
export async function deleteKeys(
  { publicKeys, fromTable }: DeleteRequest,
  parts: KeyManagementParts,
): Promise<{ readonly results: DeleteResult[]; readonly slashingProtection: string }> {
  const named = [...new Set(publicKeys)];
  const kept = fromTable ? new Map() : ((await parts.table?.rows.get(named)) ?? new Map());
  const problems = new Map<string, string>();
  for (const publicKey of named) {
    if (parts.store.find(publicKey)?.source === 'filesystem') problems.set(publicKey, OF_A_FILE);
    else if (kept.has(publicKey)) problems.set(publicKey, OF_THE_TABLE);
  }
  const removable = named.filter((publicKey) => !problems.has(publicKey));
  const deleted = await removeForGood(removable, fromTable, parts);
  const { file, recorded } = await parts.slashing.export(removable);
  const results = publicKeys.map((publicKey): DeleteResult => {
    const message = problems.get(publicKey);
    if (message !== undefined) return { publicKey, status: 'error', recorded: false, message };
    const status = deleted.has(publicKey) ? 'deleted' : 'not_found';
    return { publicKey, status, recorded: recorded.has(publicKey) };
  });
  return { results, slashingProtection: file };
}

const OF_A_FILE = 'a key of a key file: delete the file and restart the signer';
const OF_THE_TABLE = 'a key of the key table: it is deleted through /api/v1/chamber/keys';

/** @returns those that were here */
async function removeForGood(
  publicKeys: readonly string[],
  fromTable: boolean,
  { store, table, drain, log }: KeyManagementParts,
): Promise<ReadonlySet<string>> {
  const release = table?.loader.withhold(publicKeys);
  try {
    const deleted = new Set<string>();
    for (const publicKey of publicKeys) {
      const removed = store.remove(publicKey);
      if (removed?.source === 'memory') deleted.add(publicKey);
    }
    // Also of those that were not found: another request may have removed them a moment ago.
    await drain(publicKeys);
    const outcomes = (fromTable && (await table?.rows.delete(publicKeys))) || new Map<string, string>();
    for (const [publicKey, outcome] of outcomes) if (outcome === 'deleted') deleted.add(publicKey);
    for (const publicKey of deleted) log.info({ public_key: publicKey }, 'a key was deleted');
    return deleted;
  } finally {
    release?.();
  }
}
