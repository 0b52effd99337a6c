// Histories that an import has brought and that are not merged yet. What is there when the database is opened is of an
// import that ended before its time, which is repeated: it is removed.

import type { DatabaseSync } from 'node:sqlite';
import { historyCodes } from '../history/codes.ts';
import { readPart, type StagedText } from '../operations/import-text.ts';
import { keyBytes, type StagedImport } from '../operations/store.ts';
import { damaged, numberOf, requiredBytes } from './tables/rows.ts';
import type { DatabaseOptions } from './tables/schema.ts';

const PAGE_ROWS = 50;

export function stagedHistories(connection: DatabaseSync, { integrity }: Pick<DatabaseOptions, 'integrity'>) {
  const codes = historyCodes(integrity);
  const insert = connection.prepare(
    'INSERT INTO staged (id, import_id, public_key, history, code) VALUES (?, ?, ?, ?, ?)',
  );
  const count = connection.prepare('SELECT count(*) AS count FROM staged WHERE import_id = ?');
  const nextKeys = connection.prepare(
    `SELECT DISTINCT public_key FROM staged INDEXED BY staged_keys WHERE import_id = ? AND public_key > ?
     ORDER BY public_key LIMIT ?`,
  );
  const nextPart = connection.prepare(
    'SELECT id, history, code FROM staged WHERE import_id = ? AND public_key = ? AND id > ? ORDER BY id LIMIT 1',
  );
  const removePage = connection.prepare(
    `DELETE FROM staged WHERE id IN (SELECT id FROM staged WHERE import_id = ? LIMIT ${PAGE_ROWS})`,
  );
  const lastId = connection.prepare('SELECT max(id) AS id FROM staged');
  const codeOf = (id: number, importId: number, publicKey: Uint8Array, history: string): Uint8Array =>
    codes.storeCode([id, importId, publicKey, Buffer.from(history)]);

  return {
    add(importId: number, parts: readonly StagedText[]): void {
      let id = Number(lastId.get()?.['id'] ?? 0);
      for (const [key, history] of parts) {
        const publicKey = keyBytes(key);
        id += 1;
        insert.run(id, importId, publicKey, history, codeOf(id, importId, publicKey, history));
      }
    },
    count: (importId: number) => Number(count.get(importId)?.['count']),
    of: (importId: number): StagedImport => ({
      keysAfter: async (last, limit) =>
        nextKeys.all(importId, last, limit).map((row) => requiredBytes(row['public_key'])),
      async *parts(publicKey) {
        for (let after = 0; ; ) {
          const row = nextPart.get(importId, publicKey, after);
          if (row === undefined) return;
          const history = String(row['history']);
          after = numberOf(row['id']);
          const code = codeOf(after, importId, publicKey, history);
          if (Buffer.compare(requiredBytes(row['code']), code) !== 0) throw damaged('staged');
          yield readPart(history);
        }
      },
    }),
    removeSome: (importId: number) => removePage.run(importId).changes > 0,
    removeAll: () => connection.exec('DELETE FROM staged'),
  };
}
