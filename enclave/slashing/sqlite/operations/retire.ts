// Keys that left this store, and what the keys that are there have signed at most: reads and writes of heads alone.

import type { DatabaseSync } from 'node:sqlite';
import { NO_MARKS } from '../../history/rules.ts';
import { higherMarks, NEW_KEY } from '../../history/state.ts';
import type { HighWaterMarks, PublicKeyHex } from '../../types.ts';
import type { DatabaseOptions } from '../options.ts';
import { STEP_ENTRIES, type Steps } from '../steps.ts';
import { isDamage, numberOf } from '../tables/cells.ts';
import { headTable } from '../tables/heads.ts';
import { keyList } from '../tables/key-list.ts';
import { storeRecord, withKeys } from '../tables/record.ts';
import { inTransaction } from '../tables/schema.ts';

/** Heads of one transaction. */
const SLICE_VALIDATORS = 200;

export function keyRegister(
  connection: DatabaseSync,
  options: DatabaseOptions,
  known = keyList(connection, storeRecord(connection, options)),
) {
  const heads = headTable(connection, options.integrity);
  const records = storeRecord(connection, options);
  const marked = connection.prepare('SELECT public_key FROM validators WHERE is_retired <> 0 ORDER BY public_key');
  const slice = connection.prepare('SELECT id FROM validators WHERE id > ? ORDER BY id LIMIT ?');

  function retireSlice(publicKeys: readonly Uint8Array[]): void {
    const { added, after } = inTransaction(connection, () => {
      const store = records.read();
      const added: Uint8Array[] = [];
      for (const publicKey of publicKeys) {
        const head = heads.find(publicKey);
        if (head === undefined) {
          known.confirmNew(publicKey, store);
          heads.insert({ id: heads.nextId(), publicKey, state: { ...NEW_KEY, isRetired: true } });
          added.push(publicKey);
        } else if (!head.state.isRetired) {
          heads.update({ ...head, state: { ...head.state, isRetired: true } });
        }
      }
      const after = withKeys(store, added);
      if (added.length > 0) records.write(after);
      return { added, after };
    });
    if (added.length > 0) known.added(added, after);
  }

  function reinstateSlice(publicKeys: readonly Uint8Array[]): Uint8Array[] {
    return inTransaction(connection, () =>
      publicKeys.filter((publicKey) => {
        const head = heads.find(publicKey);
        if (head?.state.isRetired !== true) return false;
        heads.update({ ...head, state: { ...head.state, isRetired: false } });
        return true;
      }),
    );
  }

  return {
    *retire(publicKeys: readonly PublicKeyHex[]): Steps<null> {
      for (const keys of slicesOf(publicKeys)) {
        retireSlice(keys);
        yield keys.length;
      }
      return null;
    },

    *reinstate(publicKeys: readonly PublicKeyHex[]): Steps<PublicKeyHex[]> {
      const reinstated: PublicKeyHex[] = [];
      for (const keys of slicesOf(publicKeys)) {
        reinstated.push(...reinstateSlice(keys).map(hexOf));
        yield keys.length;
      }
      return reinstated;
    },

    *retired(publicKeys: readonly PublicKeyHex[] | null): Steps<PublicKeyHex[]> {
      const asked =
        publicKeys === null
          ? marked.all().map((row) => `0x${Buffer.from(row['public_key'] as Uint8Array).toString('hex')}`)
          : publicKeys;
      const retired: PublicKeyHex[] = [];
      for (const keys of slicesOf(asked)) {
        retired.push(...keys.filter((key) => heads.find(key)?.state.isRetired === true).map(hexOf));
        yield keys.length;
      }
      return retired;
    },

    /** A key whose head is damaged signs nothing: what it would say is left out. */
    *highest(): Steps<HighWaterMarks> {
      let marks = NO_MARKS;
      for (let after = 0; ; ) {
        const ids = slice.all(after, STEP_ENTRIES).map((row) => numberOf(row['id']));
        for (const id of ids) marks = higherMarks(marks, marksAt(id));
        const last = ids.at(-1);
        if (last === undefined) return marks;
        after = last;
        yield ids.length;
      }
    },
  };

  function marksAt(id: number): HighWaterMarks {
    try {
      return heads.findById(id)?.state.highest ?? NO_MARKS;
    } catch (error) {
      if (isDamage(error)) return NO_MARKS;
      throw error;
    }
  }
}

function* slicesOf(publicKeys: readonly PublicKeyHex[]): Generator<Uint8Array[]> {
  const keys = [...new Set(publicKeys)].sort().map((key) => Buffer.from(key.slice(2), 'hex'));
  for (let at = 0; at < keys.length; at += SLICE_VALIDATORS) yield keys.slice(at, at + SLICE_VALIDATORS);
}

function hexOf(publicKey: Uint8Array): PublicKeyHex {
  return `0x${Buffer.from(publicKey).toString('hex')}`;
}
