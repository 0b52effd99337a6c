// Adds heads for keys that have none. Before, the keys that are there are shown to be those of the store's record: a
// key whose head was deleted is damage and not a new key.

import type { HistoryCodes } from '../../history/codes.ts';
import { NEW_KEY } from '../../history/state.ts';
import type { PublicKeyHex } from '../../types.ts';
import { type Connection, commit } from '../connection/connections.ts';
import { BEGIN } from '../connection/transactions.ts';
import { digestsOf, keyBytes } from './rows.ts';
import { isSameList, listKeys, type StoreReader, writeStore } from './store.ts';

const ADD_HEADS = `
  INSERT INTO strongroom.validators (public_key, digests, code)
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS new (public_key, digests, code) ORDER BY public_key
  ON CONFLICT (public_key) DO NOTHING`;

/**
 * Make sure that each key has a head, in a transaction of its own: whoever adds keys waits for the record of the store
 * only, and holds it for a moment. `damaged`: the keys that are there are not those of the record, and none was added.
 */
export async function addKeys(
  connection: Connection,
  codes: HistoryCodes,
  store: StoreReader,
  publicKeys: readonly PublicKeyHex[],
): Promise<'added' | 'damaged'> {
  const keys = [...new Set(publicKeys)].map(keyBytes);
  const seals = keys.map((key) => codes.sealHead(key, NEW_KEY));
  const values = [keys, seals.map(digestsOf), seals.map(({ code }) => code)];
  const [, { record }, before, , after] = await Promise.all([
    connection.query(BEGIN),
    store.lock(connection),
    listKeys(connection),
    connection.query({ name: 'add_heads', text: ADD_HEADS, values }),
    listKeys(connection),
  ]);
  if (!isSameList(record.keys, before)) {
    await connection.query('ROLLBACK');
    return 'damaged';
  }
  await Promise.all([writeStore(connection, codes, { ...record, keys: after }), commit(connection)]);
  return 'added';
}
