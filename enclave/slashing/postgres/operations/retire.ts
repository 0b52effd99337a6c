// Keys that left the store, and came back: a mark in the head of each key, under its code. A head is locked as a check
// locks it, so a check that began is over before its key is retired, and every later one is refused.

import { SignerError } from '../../../api/errors.ts';
import type { KeyState } from '../../history/state.ts';
import type { PublicKeyHex } from '../../types.ts';
import { type Connection, commit } from '../connection/connections.ts';
import { BEGIN } from '../connection/transactions.ts';
import { addKeys } from '../tables/keys.ts';
import { execute, updateHeads } from '../tables/record.ts';
import { HEAD_COLUMNS, type HeadRow, keyBytes, keyHex, openHeadRow } from '../tables/rows.ts';
import type { CheckTools } from './check.ts';

const PAGE_KEYS = 500;

const LOCK_HEADS = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators
  WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key FOR UPDATE`;

const PAGE_OF_HEADS = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators
  WHERE public_key > $1 AND ($2::bytea[] IS NULL OR public_key = ANY ($2)) ORDER BY public_key LIMIT ${PAGE_KEYS}`;

export async function retire(
  connection: Connection,
  tools: CheckTools,
  publicKeys: readonly PublicKeyHex[],
): Promise<void> {
  for (const page of pages(publicKeys)) {
    const outcome = await addKeys(connection, tools.codes, tools.store, page);
    const marked = await mark(connection, tools, page, true);
    if (outcome === 'damaged' && marked.found < page.length) {
      throw new SignerError('slashing_integrity', { hint: 'heads of keys are gone from the slashing database' });
    }
  }
}

export async function reinstate(
  connection: Connection,
  tools: CheckTools,
  publicKeys: readonly PublicKeyHex[],
): Promise<readonly PublicKeyHex[]> {
  const reinstated: PublicKeyHex[] = [];
  for (const page of pages(publicKeys)) reinstated.push(...(await mark(connection, tools, page, false)).changed);
  return reinstated;
}

/** Every head that is looked at is verified: a retired key may not hide by a change of its row. */
export async function retiredKeys(
  connection: Connection,
  { codes }: CheckTools,
  publicKeys: readonly PublicKeyHex[] | undefined,
): Promise<readonly PublicKeyHex[]> {
  const wanted = publicKeys?.map(keyBytes) ?? null;
  const retired: PublicKeyHex[] = [];
  for (let last: Buffer = Buffer.alloc(0); ; ) {
    const { rows } = await connection.query<HeadRow>(PAGE_OF_HEADS, [last, wanted]);
    for (const head of rows) if (verified(codes, head).isRetired) retired.push(keyHex(head.public_key));
    last = rows.at(-1)?.public_key ?? last;
    if (rows.length < PAGE_KEYS) return retired;
  }
}

async function mark(
  connection: Connection,
  { codes }: CheckTools,
  publicKeys: readonly PublicKeyHex[],
  isRetired: boolean,
): Promise<{ readonly found: number; readonly changed: readonly PublicKeyHex[] }> {
  const [, { rows }] = await Promise.all([
    connection.query(BEGIN),
    connection.query<HeadRow>({ name: 'lock_heads', text: LOCK_HEADS, values: [publicKeys.map(keyBytes)] }),
  ]);
  const changes = rows
    .map((head) => ({ head, state: verified(codes, head) }))
    .filter(({ state }) => state.isRetired !== isRetired)
    .map(({ head, state }) => ({ head, state: { ...state, isRetired } }));
  if (changes.length > 0) await execute(connection, updateHeads(codes, changes));
  await commit(connection);
  return { found: rows.length, changed: changes.map(({ head }) => keyHex(head.public_key)) };
}

function verified(codes: CheckTools['codes'], head: HeadRow): KeyState {
  const state = openHeadRow(codes, head);
  if (state !== undefined) return state;
  throw new SignerError('slashing_integrity', { detail: { public_key: keyHex(head.public_key) } });
}

/** Ascending, each key once: the order in which everybody locks. */
function* pages(publicKeys: readonly PublicKeyHex[]): Generator<readonly PublicKeyHex[]> {
  const keys = [...new Set(publicKeys)].sort();
  for (let at = 0; at < keys.length; at += PAGE_KEYS) yield keys.slice(at, at + PAGE_KEYS);
}
