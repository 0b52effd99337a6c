// Which keys have a head, as this process remembers it: so that a key without one is told from a key whose head was
// taken away, without a walk over all heads for each commit that has a new key. What is remembered are the keys of one
// walk that gave the number and the digest of the store's record, and the keys that this connection has added since. It
// is believed only while the record (under a code, read in each transaction) has the same number and digest. A key that
// is in it and has no head is damage; one that is not in it is new. A commit of any other connection changes
// `data_version`, which leads to a new walk. When another program writes the file without SQLite, a walk need not show
// it: pages stay in the cache. Here the missing head is noticed all the same, by the key that asks.

import type { DatabaseSync } from 'node:sqlite';
import type { SqliteStoreRecord, StoreRecords } from './record.ts';
import { damaged } from './rows.ts';

/** About 100 bytes a key, and nothing before the first key that is new. Ask and tell within one connection. */
export type KnownKeys = ReturnType<typeof keyList>;

interface Known {
  readonly dataVersion: number;
  readonly record: SqliteStoreRecord;
  readonly keys: Set<string> | undefined;
}

export function keyList(connection: DatabaseSync, records: Pick<StoreRecords, 'isWhole'>) {
  const version = connection.prepare('PRAGMA data_version');
  version.setReturnArrays(true);
  let known: Known | undefined;

  const dataVersion = (): number => (version.get() as unknown as [number])[0];

  function walk(record: SqliteStoreRecord): Known {
    const keys = new Set<string>();
    const isWhole = records.isWhole(record, (publicKey) => keys.add(keyText(publicKey)));
    return { dataVersion: dataVersion(), record, keys: isWhole ? keys : undefined };
  }

  return {
    /**
     * In a transaction that has read this record and has not written it: that a key without a head is a new one.
     * @throws SignerError slashing_integrity
     */
    confirmNew(publicKey: Uint8Array, record: SqliteStoreRecord): void {
      if (known?.dataVersion !== dataVersion() || !isSameList(known.record, record)) known = walk(record);
      if (known.keys?.has(keyText(publicKey)) !== false) throw damaged('a validator is missing');
    },
    /** After the commit that gave these keys, each of them confirmed, a head, and wrote this record. */
    added(publicKeys: readonly Uint8Array[], record: SqliteStoreRecord): void {
      if (known?.keys === undefined) return;
      for (const publicKey of publicKeys) known.keys.add(keyText(publicKey));
      known = { ...known, record };
    },
  };
}

function keyText(publicKey: Uint8Array): string {
  return Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.length).toString('latin1');
}

function isSameList(one: SqliteStoreRecord, other: SqliteStoreRecord): boolean {
  return one === other || (one.keys === other.keys && Buffer.compare(one.keysDigest, other.keysDigest) === 0);
}
