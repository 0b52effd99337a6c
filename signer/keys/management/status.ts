// Activates and deactivates keys of the key table, in the order of specification/keys.md#order. After a fault in the
// middle no signer signs with the key; a repeated request finishes it.

import { telling } from '../../api/errors.ts';
import { isEndedTenure, type Tenures } from '../../tenure.ts';
import type { KeyStatus, TableKey } from '../table/types.ts';
import type { KeyManagementParts } from './management.ts';
import { whileLeaving } from './stop.ts';

interface StatusChange {
  readonly publicKey: string;
  readonly status: KeyStatus;
}

export interface StatusResult {
  readonly publicKey: string;
  readonly status: 'updated' | 'unchanged' | 'not_found' | 'error';
  readonly message?: string;
}

/** Each key is named once. @throws SignerError `starting`, `sealed`; `key_table_unavailable`: repeating is safe */
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
  const named = changes.map(({ publicKey }) => publicKey);
  // Read before the rows: only this tenure is moved on, so a request that stood still meanwhile changes nothing.
  const before = await parts.slashing.tenures(named);
  const rows: Rows = (await table?.rows.get(named)) ?? new Map();
  parts.store.assertReady(); // sealed meanwhile, it has forgotten the files
  const settled = new Map<string, StatusResult>();
  for (const change of changes) {
    const result = resultWithoutChange(change, rows, parts);
    if (result !== undefined) settled.set(change.publicKey, result);
  }
  const due = changes.filter(({ publicKey }) => !settled.has(publicKey));
  const ending = due.filter(({ status }) => status === 'inactive').map(({ publicKey }) => publicKey);
  const stoppedHere = new Set<string>();
  const outcomes = await whileLeaving(ending, parts, async ({ copies, end, mayChange }) => {
    await end(ending);
    await parts.imported?.remove(ending); // a copy of memory that stops is not to come back
    if (table === undefined || due.length === 0) return new Map<string, StatusResult['status']>();
    mayChange();
    const set = await table.rows.setStatus(due);
    await end(await stillInactive(ending, parts));
    for (const publicKey of copies.keys()) {
      parts.store.remove(publicKey);
      stoppedHere.add(publicKey);
    }
    return set;
  });
  // Only where the row says so: a key that is not there is not taken in.
  const beginning = due.filter(
    ({ publicKey, status }) =>
      status === 'active' && outcomes.has(publicKey) && outcomes.get(publicKey) !== 'not_found',
  );
  const begun = await begin(beginning, before, parts);
  const results = changes.map(({ publicKey }): StatusResult => {
    if (begun.moved.has(publicKey)) return { publicKey, status: 'error', message: MOVED };
    const outcome = settled.get(publicKey)?.status ?? outcomes.get(publicKey) ?? 'not_found';
    // The row said so already, but a copy of memory signed, or the key's tenure had ended.
    const isChanged = stoppedHere.has(publicKey) || begun.begun.has(publicKey);
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

/** Another request may take a key in because it saw the row before that said inactive. */
async function stillInactive(keys: readonly string[], { table }: KeyManagementParts): Promise<readonly string[]> {
  const rows: Rows = (await table?.rows.get(keys)) ?? new Map();
  return keys.filter((publicKey) => rows.get(publicKey)?.status !== 'active');
}

async function begin(
  beginning: readonly StatusChange[],
  before: Tenures,
  { slashing, store }: KeyManagementParts,
): Promise<{ readonly begun: Tenures; readonly moved: ReadonlySet<string> }> {
  const from = new Map(
    beginning.flatMap(({ publicKey }) => {
      const tenure = before.get(publicKey) ?? 0;
      return isEndedTenure(tenure) ? [[publicKey, tenure] as const] : [];
    }),
  );
  if (from.size === 0) return { begun: new Map(), moved: new Set() };
  const begun = await slashing.beginTenures(from).catch(telling(NOT_BEGUN));
  // No look would: a row that said so already has not moved.
  await store.renewTenures([...begun.keys()]).catch(() => undefined);
  const moved = new Set([...from.keys()].filter((publicKey) => !begun.has(publicKey)));
  return { begun, moved };
}

const MOVED =
  'another request changed this key at the same time: the row says active, and the key may not sign; look at it and repeat the request';

function resultWithoutChange(
  { publicKey, status }: StatusChange,
  rows: Rows,
  { store }: KeyManagementParts,
): StatusResult | undefined {
  const error = (message: string): StatusResult => ({ publicKey, status: 'error', message });
  if (!rows.has(publicKey)) {
    if (store.find(publicKey) === undefined) return { publicKey, status: 'not_found' };
    return status === 'active' ? { publicKey, status: 'unchanged' } : error(NOT_OF_THE_TABLE);
  }
  if (status === 'active') return undefined;
  return store.isInFile(publicKey) ? error(ALSO_OF_A_FILE) : undefined;
}

const NOT_BEGUN =
  'the rows say active, and the slashing store may not have taken the keys in: signers refuse them (key_retired) until you ' +
  'repeat the request, which finishes it';

const NOT_OF_THE_TABLE = 'only a key of the key table can be inactive';
const ALSO_OF_A_FILE =
  'a key file of this signer holds this key, so it would sign: delete the file, restart the signer, repeat the request';
