// Exports hold a view of the database open, and with it the write-ahead log: a reader that is gone must not keep it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { rowIntegrity } from '../../../enclave/slashing/history/integrity.ts';
import { writeHistory } from '../../../enclave/slashing/sqlite/history-text.ts';
import { EXPORT_STALL_MS, heldExports } from '../../../enclave/slashing/sqlite/operations/export.ts';
import { importer } from '../../../enclave/slashing/sqlite/operations/import.ts';
import { openDatabase } from '../../../enclave/slashing/sqlite/tables/schema.ts';
import { history, publicKeyOf } from '../../support/slashing.ts';
import { allSteps } from './all-steps.ts';

let folder: string;
let writer: DatabaseSync;
let exports_: ReturnType<typeof heldExports>;
let milliseconds = 0;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-export-'));
  const genesisValidatorsRoot = new Uint8Array(32);
  const path = join(folder, 'slashing_protection.sqlite');
  const options = { path, genesisValidatorsRoot, integrity: rowIntegrity({ genesisValidatorsRoot }) };
  writer = openDatabase(options).connection;
  const imports = importer(writer, options);
  imports.stage(1, [[publicKeyOf(1), writeHistory(history(1, [[10, null]], []))]]);
  allSteps(imports.merge(1, 1, 'by_key'));
  milliseconds = 0;
  exports_ = heldExports(options, { now: () => 0, monotonic: () => milliseconds });
});

afterEach(() => {
  exports_.endAll();
  writer.close();
  rmSync(folder, { recursive: true });
});

/** Writes, and moves the log to the database: whether all of it went. */
function logIsEmptied(): boolean {
  writer.exec('UPDATE validators SET low_slot = low_slot');
  return writer.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
}

it('an export whose reader asks in time goes on, however long it takes', () => {
  exports_.begin(1, undefined);
  for (let step = 0; step < 2; step++) {
    milliseconds += EXPORT_STALL_MS;
    exports_.endStalled();
    expect(allSteps(exports_.next(1))).toHaveLength(step === 0 ? 1 : 0);
  }
  expect(logIsEmptied()).toBe(false);
});

it('an export whose reader does not ask is ended, and the log can be emptied again', () => {
  exports_.begin(1, undefined);
  milliseconds += EXPORT_STALL_MS + 1;
  exports_.begin(2, undefined);
  exports_.endStalled();
  expect(() => allSteps(exports_.next(1))).toThrow('the export is over');
  expect(allSteps(exports_.next(2))).toHaveLength(1);
  exports_.end(2);
  expect(logIsEmptied()).toBe(true);
});

it('only so many exports are under way at once', () => {
  for (let exportId = 0; exportId < 8; exportId++) exports_.begin(exportId, undefined);
  expect(() => exports_.begin(8, undefined)).toThrow('too many exports');
});
