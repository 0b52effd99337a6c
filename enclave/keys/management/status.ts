// Activates and deactivates keys of the key table. A key becomes inactive in this order: no copy of it signs here any
// more, from whatever source, and its last signature is over; it is retired in the slashing store, so that no other
// signer of it signs with the key before it looks at the table; its row says so; the answer. It becomes active in the
// opposite order: the row, then the store. A key that would sign here all the same, of a file or by the configuration,
// is an error and stays as it is. A fault in between leaves a key that nobody signs with; a repeated request finishes
// it.

import type { LoadedKey } from '../loaded-key.ts';
import type { KeyStatus, TableKey } from '../table/types.ts';
import type { KeyManagementParts } from './management.ts';
import { whileStopped } from './stop.ts';

export interface StatusChange {
  readonly publicKey: string;
  readonly status: KeyStatus;
}

export interface StatusResult {
  readonly publicKey: string;
  readonly status: 'updated' | 'unchanged' | 'not_found' | 'error';
  readonly message?: string;
}

/**
 * Each key is named once.
 * @throws SignerError `starting` while nobody knows yet which keys files hold, `sealed`; `key_table_unavailable`:
 * repeating is safe
 */
export async function changeStatus(
  changes: readonly StatusChange[],
  parts: KeyManagementParts,
): Promise<StatusResult[]> {
  parts.store.assertReady();
  return parts.turns(
    changes.map(({ publicKey }) => publicKey),
    () => changeInTurn(changes, parts),
  );
}

type Rows = ReadonlyMap<string, TableKey>;

async function changeInTurn(changes: readonly StatusChange[], parts: KeyManagementParts): Promise<StatusResult[]> {
  const { table, log } = parts;
  const rows: Rows = (await table?.rows.get(changes.map(({ publicKey }) => publicKey))) ?? new Map();
  parts.store.assertReady(); // sealed meanwhile, it has forgotten the files
  const settled = new Map<string, StatusResult>();
  for (const change of changes) {
    const result = resultWithoutChange(change, rows, parts);
    if (result !== undefined) settled.set(change.publicKey, result);
  }
  const due = changes.filter(({ publicKey }) => !settled.has(publicKey));
  const ending = due.filter(({ status }) => status === 'inactive').map(({ publicKey }) => publicKey);
  let takenOut: ReadonlyMap<string, LoadedKey> = new Map();
  const outcomes = await whileStopped(ending, parts, async (stopped) => {
    takenOut = stopped;
    if (ending.length > 0) await parts.slashing.retire(ending);
    await parts.imported?.remove(ending); // a copy of memory that stops is not to come back
    return table === undefined || due.length === 0 ? new Map<string, never>() : table.rows.setStatus(due);
  });
  const beginning = due.filter(({ status }) => status === 'active').map(({ publicKey }) => publicKey);
  const reinstated = new Set(beginning.length === 0 ? [] : await parts.slashing.reinstate(beginning));
  const results = changes.map(({ publicKey }): StatusResult => {
    const outcome = settled.get(publicKey)?.status ?? outcomes.get(publicKey) ?? 'not_found';
    // The row said so already, but a copy of memory signed, or the key was retired.
    const isChanged = takenOut.has(publicKey) || reinstated.has(publicKey);
    const status = outcome === 'unchanged' && isChanged ? 'updated' : outcome;
    return { ...settled.get(publicKey), publicKey, status };
  });
  const updated = new Set(results.filter(({ status }) => status === 'updated').map(({ publicKey }) => publicKey));
  for (const { publicKey, status } of due) {
    if (updated.has(publicKey)) log.info({ public_key: publicKey, status }, 'the status of a key changed');
  }
  // What is changed is durable: a refresh that fails now is made up for by the next.
  if (due.length > 0) await table?.loader.refresh().catch(() => undefined);
  return results;
}

/** The result of a key whose row is not to be touched; undefined for the others. */
function resultWithoutChange(
  { publicKey, status }: StatusChange,
  rows: Rows,
  { store, table }: KeyManagementParts,
): StatusResult | undefined {
  const error = (message: string): StatusResult => ({ publicKey, status: 'error', message });
  if (!rows.has(publicKey)) {
    if (store.find(publicKey) === undefined) return { publicKey, status: 'not_found' };
    return status === 'active' ? { publicKey, status: 'unchanged' } : error(NOT_OF_THE_TABLE);
  }
  if (status === 'active') return undefined;
  if (store.isInFile(publicKey)) return error(ALSO_OF_A_FILE);
  return table?.loader.statusFilter.has('inactive') === true ? error(INACTIVE_IS_LOADED) : undefined;
}

const NOT_OF_THE_TABLE = 'only a key of the key table can be inactive';
const ALSO_OF_A_FILE =
  'a key file of this signer holds this key, so it would sign: delete the file, restart the signer, repeat the request';
const INACTIVE_IS_LOADED =
  'this signer loads inactive keys too, and they sign: take inactive out of key_sources.dynamodb.status_filter first';
