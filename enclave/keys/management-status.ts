// Activates and deactivates keys of the key table. A key that becomes inactive has made its last signature here before its row says so.

import type { KeyManagementParts } from './management.ts';
import type { KeyStore } from './store.ts';
import type { KeyStatus } from './table-types.ts';

export interface StatusChange {
  readonly publicKey: string;
  readonly status: KeyStatus;
}

export interface StatusResult {
  readonly publicKey: string;
  readonly status: 'updated' | 'unchanged' | 'not_found' | 'error';
  readonly message?: string;
}

/** Each key is named once. @throws SignerError `key_table_unavailable`; repeating the request is safe */
export async function changeStatus(
  changes: readonly StatusChange[],
  { store, table, drain, log }: KeyManagementParts,
): Promise<StatusResult[]> {
  const rows = (await table?.rows.get(changes.map(({ publicKey }) => publicKey))) ?? new Map();
  const due = changes.filter(({ publicKey, status }) => rows.get(publicKey)?.status === opposite(status));
  const ending = due.filter(({ status }) => status === 'inactive').map(({ publicKey }) => publicKey);
  const release = table?.loader.withhold(ending);
  let outcomes: ReadonlyMap<string, StatusResult['status']> = new Map();
  try {
    for (const publicKey of ending) if (store.find(publicKey)?.source === 'dynamodb') store.remove(publicKey);
    await drain(ending);
    if (due.length > 0 && table !== undefined) outcomes = await table.rows.setStatus(due);
  } finally {
    release?.();
  }
  for (const { publicKey, status } of due) {
    if (outcomes.get(publicKey) === 'updated')
      log.info({ public_key: publicKey, status }, 'the status of a key changed');
  }
  // What is changed is durable: a refresh that fails now is made up for by the next.
  if (due.length > 0) await table?.loader.refresh().catch(() => undefined);
  return changes.map((change) => {
    if (rows.has(change.publicKey)) {
      return { publicKey: change.publicKey, status: outcomes.get(change.publicKey) ?? 'unchanged' };
    }
    return withoutRow(change, store);
  });
}

function opposite(status: KeyStatus): KeyStatus {
  return status === 'active' ? 'inactive' : 'active';
}

function withoutRow({ publicKey, status }: StatusChange, store: KeyStore): StatusResult {
  if (store.find(publicKey) === undefined) return { publicKey, status: 'not_found' };
  if (status === 'active') return { publicKey, status: 'unchanged' };
  return { publicKey, status: 'error', message: 'only a key of the key table can be inactive' };
}
