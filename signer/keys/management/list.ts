// The inventory of keys, in pages: first those in no table, then the rows of the key table.

import type { KeyShare } from '../../api/distributed.ts';
import { SignerError } from '../../api/errors.ts';
import type { KeySource } from '../loaded-key.ts';
import { mergeSorted } from '../merge-sorted.ts';
import type { KeyStore } from '../store.ts';
import type { KeyStatus, TableKey } from '../table/types.ts';
import type { KeyManagementParts } from './management.ts';

const KEY_SOURCES: readonly KeySource[] = ['filesystem', 'dynamodb', 'memory'];

interface ListedKey extends Omit<TableKey, 'generation' | 'deposit'> {
  readonly source: KeySource;
  readonly sources: readonly KeySource[];
  readonly loaded: boolean;
  readonly hasDepositData: boolean;
  /** Undefined for a whole key. */
  readonly share: KeyShare | undefined;
}

export interface ListQuery {
  readonly status?: KeyStatus | undefined;
  readonly source?: KeySource | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface ListedPage {
  readonly keys: readonly ListedKey[];
  readonly nextCursor: string | undefined;
}

type Parts = Pick<KeyManagementParts, 'store' | 'table'>;
type Rows = ReadonlyMap<string, TableKey>;

const CURSOR = /^(?<part>loaded|table)\.(?<place>[\x21-\x7e]*)$/;

/** @throws SignerError `malformed_parameter`, `starting`, `sealed`, `key_table_unavailable` */
export async function listManagedKeys(query: ListQuery, parts: Parts): Promise<ListedPage> {
  const { part, place } = readCursor(query.cursor);
  const candidates = part === 'loaded' ? outsideTable(query, place, parts.store) : [];
  const page = candidates.slice(0, query.limit);
  const keys = await listOutsideTable(page, query, parts);
  const last = page.at(-1);
  if (candidates.length > page.length && last !== undefined) return { keys, nextCursor: `loaded.${last}` };
  const { keys: rest, nextCursor } = await tablePage(
    query,
    query.limit - keys.length,
    part === 'table' ? place : '',
    parts,
  );
  const listed = new Set(keys.map(({ publicKey }) => publicKey));
  return { keys: [...keys, ...rest.filter(({ publicKey }) => !listed.has(publicKey))], nextCursor };
}

function readCursor(cursor = 'loaded.'): { readonly part: string; readonly place: string } {
  const { part, place } = CURSOR.exec(cursor)?.groups ?? {};
  if (part === undefined || place === undefined) throw new SignerError('malformed_parameter', { hint: 'cursor' });
  return { part, place };
}

function outsideTable({ status, source }: ListQuery, after: string, store: KeyStore): string[] {
  const loaded = store.publicKeys();
  if (source === 'dynamodb' || (status === 'inactive' && source === undefined)) return [];
  const wanted = (publicKey: string): boolean => {
    if (publicKey <= after) return false;
    const isInMemory = store.find(publicKey)?.source === 'memory';
    if (source === 'memory') return isInMemory;
    return store.isInFile(publicKey) || (source === undefined && isInMemory);
  };
  const unloaded = [...store.alsoInFiles()].filter((publicKey) => store.find(publicKey) === undefined).sort();
  return mergeSorted(loaded.filter(wanted), unloaded.filter(wanted));
}

async function listOutsideTable(publicKeys: readonly string[], query: ListQuery, parts: Parts): Promise<ListedKey[]> {
  const rows: Rows = (await parts.table?.rows.get(publicKeys)) ?? new Map();
  return publicKeys.flatMap((publicKey) => {
    const row = rows.get(publicKey);
    if (row !== undefined && query.source === undefined) return [];
    const listed = row === undefined ? withoutRow(publicKey, parts.store) : withRow(row, parts.store);
    return listed === undefined || listed.status !== (query.status ?? listed.status) ? [] : [listed];
  });
}

async function tablePage(
  { status, source }: ListQuery,
  limit: number,
  place: string,
  { store, table }: Parts,
): Promise<ListedPage> {
  if (table === undefined || (source !== undefined && source !== 'dynamodb'))
    return { keys: [], nextCursor: undefined };
  if (limit === 0) return { keys: [], nextCursor: `table.${place}` };
  const cursor = place === '' ? undefined : place;
  const { keys, nextCursor } = await table.rows.list({ status, limit, cursor });
  return {
    keys: keys.map((row) => withRow(row, store)),
    nextCursor: nextCursor === undefined ? undefined : `table.${nextCursor}`,
  };
}

function withRow({ publicKey, status, createdAt, updatedAt, ...row }: TableKey, store: KeyStore): ListedKey {
  const loaded = store.find(publicKey);
  const sources = sourcesOf(publicKey, true, store);
  return {
    publicKey,
    source: loaded?.source ?? 'dynamodb',
    sources,
    status,
    loaded: loaded !== undefined,
    createdAt,
    updatedAt,
    hasBackup: row.hasBackup,
    hasDepositData: row.deposit !== undefined,
    share: loaded?.share,
  };
}

/** Undefined for a key that is not loaded either: a key file that could not be opened names it. */
function withoutRow(publicKey: string, store: KeyStore): ListedKey | undefined {
  const loaded = store.find(publicKey);
  if (loaded === undefined) return undefined;
  const since = new Date(loaded.loadedAt * 1000).toISOString();
  return {
    publicKey,
    source: loaded.source,
    sources: sourcesOf(publicKey, false, store),
    status: 'active',
    loaded: true,
    createdAt: since,
    updatedAt: since,
    hasBackup: false,
    hasDepositData: false,
    share: loaded.share,
  };
}

function sourcesOf(publicKey: string, hasRow: boolean, store: KeyStore): readonly KeySource[] {
  const loaded = store.find(publicKey)?.source;
  const holds: Readonly<Record<KeySource, boolean>> = {
    filesystem: store.isInFile(publicKey),
    dynamodb: hasRow || loaded === 'dynamodb',
    memory: loaded === 'memory',
  };
  return KEY_SOURCES.filter((source) => holds[source]);
}
