// The record of the store is read for each batch. A row that was believed once is believed again only as it was.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { rowIntegrity } from '../../../../signer/slashing/history/codes.ts';
import { type StoreRecords, storeRecord } from '../../../../signer/slashing/sqlite/tables/record.ts';
import { openDatabase } from '../../../../signer/slashing/sqlite/tables/schema.ts';

let folder: string;
let connection: DatabaseSync;
let records: StoreRecords;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-record-'));
  const path = join(folder, 'slashing_protection.sqlite');
  writeFileSync(path, '', { mode: 0o600 });
  const genesisValidatorsRoot = new Uint8Array(32).fill(1);
  const integrity = rowIntegrity({ genesisValidatorsRoot, key: new Uint8Array(32).fill(2) });
  connection = openDatabase({ path, genesisValidatorsRoot, integrity });
  records = storeRecord(connection, { genesisValidatorsRoot, integrity });
});
afterEach(() => {
  connection.close();
  rmSync(folder, { recursive: true });
});

it.each([
  ['store_id', 'randomblob(16)'],
  ['incarnation', "'x'"],
  ['floor_slot', '0'],
  ['floor_source_epoch', '0'],
  ['floor_target_epoch', '0'],
  ['validator_count', '1'],
  ['keys_digest', 'randomblob(32)'],
  ['code', 'randomblob(16)'],
])('%s that is altered under a running signer is damage, and the row as it was is not', (column, value) => {
  const whole = records.read();
  expect(records.read()).toEqual(whole);
  connection.exec(`CREATE TEMP TABLE kept AS SELECT ${column} AS cell FROM metadata`);
  connection.exec(`UPDATE metadata SET ${column} = ${value}`);
  expect(() => records.read()).toThrow(expect.objectContaining({ reason: 'slashing_integrity' }));
  connection.exec(`UPDATE metadata SET ${column} = (SELECT cell FROM kept)`);
  expect(records.read()).toEqual(whole);
});

it('what was written is what is read next', () => {
  const floor = { slot: 64, sourceEpoch: 1, targetEpoch: 2 };
  const written = { ...records.read(), incarnation: 'x', floor };
  records.write(written);
  expect(records.read()).toEqual(written);
});
