// The inventory of keys, in pages: first those of files and of memory, ascending, then the rows of the key table in its own order.
// Not the list for validator clients: keys that cannot sign are in it, and a page is not one state of everything.

import { SignerError } from '../api/errors.ts';
import type { KeyManagementParts } from './management.ts';
import type { KeySource, LoadedKey } from './store.ts';
import type { KeyStatus, TableKey } from './table-types.ts';

export interface ListedKey {
  readonly publicKey: string;
  readonly source: KeySource;
  readonly status: KeyStatus;
  readonly loaded: boolean;
  /** RFC 3339 UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly hasBackup: boolean;
  readonly hasDepositData: boolean;
}

export interface ListQuery {
  readonly status?: KeyStatus | undefined;
  readonly source?: KeySource | undefined;
  readonly limit: number;
  /** Of an earlier page. */
  readonly cursor?: string | undefined;
}

export interface KeyPage {
  readonly keys: readonly ListedKey[];
  readonly nextCursor: string | undefined;
}

/** Where the next page starts: after a key that is in no table, or at a place of the table. */
const CURSOR = /^(?<part>loaded|table)\.(?<place>[\x21-\x7e]*)$/;

/**
 * @throws SignerError `malformed_parameter` for a cursor that is none, `starting` before the first load is complete, `sealed`,
 * `key_table_unavailable`
 */
export async function listKeys(query: ListQuery, parts: Pick<KeyManagementParts, 'store' | 'table'>): Promise<KeyPage> {
  const { part, place } = readCursor(query.cursor);
  const loaded = part === 'loaded' ? loadedKeys(query, place, parts) : [];
  const page = loaded.slice(0, query.limit);
  const last = page.at(-1);
  if (loaded.length > page.length && last !== undefined) {
    return { keys: page.map(withoutRow), nextCursor: `loaded.${last.publicKey}` };
  }
  const { keys, nextCursor } = await tablePage(query, query.limit - page.length, part === 'table' ? place : '', parts);
  return { keys: [...page.map(withoutRow), ...keys], nextCursor };
}

function readCursor(cursor = 'loaded.'): { readonly part: string; readonly place: string } {
  const { part, place } = CURSOR.exec(cursor)?.groups ?? {};
  if (part === undefined || place === undefined) throw new SignerError('malformed_parameter', { hint: 'cursor' });
  return { part, place };
}

function loadedKeys({ status, source }: ListQuery, after: string, { store }: Pick<KeyManagementParts, 'store'>) {
  const publicKeys = store.publicKeys();
  if (status === 'inactive' || source === 'dynamodb') return [];
  const wanted = (key: LoadedKey) => (source === undefined ? key.source !== 'dynamodb' : key.source === source);
  return publicKeys.flatMap((publicKey) => {
    const key = publicKey > after ? store.find(publicKey) : undefined;
    return key !== undefined && wanted(key) ? [key] : [];
  });
}

async function tablePage(
  { status, source }: ListQuery,
  limit: number,
  place: string,
  { store, table }: Pick<KeyManagementParts, 'store' | 'table'>,
): Promise<KeyPage> {
  if (table === undefined || (source !== undefined && source !== 'dynamodb'))
    return { keys: [], nextCursor: undefined };
  if (limit === 0) return { keys: [], nextCursor: `table.${place}` };
  const cursor = place === '' ? undefined : place;
  const { keys, nextCursor } = await table.rows.list({ status, limit, cursor });
  const isLoaded = ({ publicKey }: TableKey) => store.find(publicKey)?.source === 'dynamodb';
  return {
    keys: keys.map((row) => ({
      publicKey: row.publicKey,
      source: 'dynamodb',
      status: row.status,
      loaded: isLoaded(row),
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      hasBackup: row.hasBackup,
      hasDepositData: row.deposit !== undefined,
    })),
    nextCursor: nextCursor === undefined ? undefined : `table.${nextCursor}`,
  };
}

function withoutRow({ publicKey, source, loadedAt }: LoadedKey): ListedKey {
  const since = new Date(loadedAt).toISOString();
  return {
    publicKey,
    source,
    status: 'active',
    loaded: true,
    createdAt: since,
    updatedAt: since,
    hasBackup: false,
    hasDepositData: false,
  };
}
