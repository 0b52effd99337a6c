// The table of histories that an import has brought and that are not merged yet, each row with its integrity code. A
// decided import is missed when some of it is gone: the record of the store says how many rows there have to be
// (record.ts).

import type { DatabaseSync } from 'node:sqlite';
import { historyCodes } from '../../history/codes.ts';
import type { ValidatorHistory } from '../../types.ts';
import { readHistory, type StagedHistory } from '../history-text.ts';
import type { DatabaseOptions } from '../options.ts';
import type { Steps } from '../steps.ts';
import { bytesOf, damaged, numberOf } from './cells.ts';

/** Rows that are deleted at once. */
const PAGE_ROWS = 50;

export type StagedHistories = ReturnType<typeof stagedHistories>;

export function stagedHistories(connection: DatabaseSync, { integrity }: Pick<DatabaseOptions, 'integrity'>) {
  const codes = historyCodes(integrity);
  const insert = connection.prepare(
    'INSERT INTO staged (id, import_id, public_key, history, code) VALUES (?, ?, ?, ?, ?)',
  );
  const count = connection.prepare('SELECT count(*) AS count FROM staged WHERE import_id = ?');
  const nextKey = connection.prepare(
    `SELECT public_key FROM staged INDEXED BY staged_keys WHERE import_id = ? AND public_key > ?
     ORDER BY public_key LIMIT 1`,
  );
  const nextPart = connection.prepare(
    'SELECT id, history, code FROM staged WHERE import_id = ? AND public_key = ? AND id > ? ORDER BY id LIMIT 1',
  );
  const removeKey = connection.prepare('DELETE FROM staged WHERE import_id = ? AND public_key = ?');
  const removePage = connection.prepare(
    `DELETE FROM staged WHERE id IN (SELECT id FROM staged WHERE import_id = ? LIMIT ${PAGE_ROWS})`,
  );
  const lastId = connection.prepare('SELECT max(id) AS id FROM staged');
  const countParts = connection.prepare('SELECT count(*) AS count FROM staged WHERE import_id = ? AND public_key = ?');
  const removeParts = connection.prepare(
    `DELETE FROM staged WHERE id IN
       (SELECT id FROM staged WHERE import_id = ? AND public_key = ? LIMIT ${PAGE_ROWS})`,
  );
  const codeOf = (id: number, importId: number, publicKey: Uint8Array, history: string): Uint8Array =>
    codes.storeCode([id, importId, publicKey, Buffer.from(history)]);

  return {
    add(importId: number, histories: readonly StagedHistory[]): void {
      let id = Number(lastId.get()?.['id'] ?? 0);
      for (const [key, history] of histories) {
        const publicKey = Buffer.from(key.slice(2), 'hex');
        id += 1;
        insert.run(id, importId, publicKey, history, codeOf(id, importId, publicKey, history));
      }
    },
    /** How many histories an import has brought. */
    count: (importId: number): number => Number(count.get(importId)?.['count']),
    /** The keys of an import, ascending, each once. */
    *keys(importId: number): Generator<Uint8Array> {
      let key: Uint8Array = new Uint8Array(0);
      for (let row = nextKey.get(importId, key); row !== undefined; row = nextKey.get(importId, key)) {
        key = bytesOf(row['public_key']);
        yield key;
      }
    },
    /** The parts of one key's history, in the order in which they came. */
    *parts(importId: number, publicKey: Uint8Array): Generator<{ part: ValidatorHistory; size: number }> {
      let after = 0;
      for (let row = nextPart.get(importId, publicKey, after); row !== undefined; ) {
        const history = String(row['history']);
        after = numberOf(row['id']);
        const code = codeOf(after, importId, publicKey, history);
        if (Buffer.compare(bytesOf(row['code']), code) !== 0) throw damaged('staged');
        const part = readHistory(history);
        yield { part, size: 1 + part.blocks.length + part.attestations.length };
        row = nextPart.get(importId, publicKey, after);
      }
    },
    /** How many parts a key's history has. */
    partsOf: (importId: number, publicKey: Uint8Array): number =>
      Number(countParts.get(importId, publicKey)?.['count']),
    /** Some parts at a time: not for an import that is decided. */
    *removeParts(importId: number, publicKey: Uint8Array): Steps<void> {
      while (removeParts.run(importId, publicKey).changes > 0) yield PAGE_ROWS;
    },
    /** Returns how many histories these were. */
    remove: (importId: number, publicKey: Uint8Array): number => Number(removeKey.run(importId, publicKey).changes),
    *removeImport(importId: number): Steps<void> {
      while (removePage.run(importId).changes > 0) yield PAGE_ROWS;
    },
    removeAllBut(importId: number | null): void {
      if (importId === null) connection.exec('DELETE FROM staged');
      else connection.prepare('DELETE FROM staged WHERE import_id <> ?').run(importId);
    },
  };
}
