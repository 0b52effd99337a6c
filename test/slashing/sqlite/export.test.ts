// Exports hold a view of the database open, and with it the write-ahead log: a reader that is gone must not keep it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { rowIntegrity } from '../../../signer/slashing/history/codes.ts';
import { EXPORT_STALL_MS, heldExports } from '../../../signer/slashing/sqlite/held-exports.ts';
import { history } from '../../support/slashing.ts';
import { storeInProcess } from '../../support/slashing-in-process.ts';

let folder: string;
let here: ReturnType<typeof storeInProcess>;
let exports_: ReturnType<typeof heldExports>;
let milliseconds = 0;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-export-'));
  const genesisValidatorsRoot = new Uint8Array(32);
  const path = join(folder, 'slashing_protection.sqlite');
  here = storeInProcess({ path, genesisValidatorsRoot, integrity: rowIntegrity({ genesisValidatorsRoot }) }, () => {});
  here.stage(1, history(1, [[10, null]], []));
  await here.merge(1);
  milliseconds = 0;
  exports_ = heldExports(here.export, { monotonic: () => milliseconds });
});

afterEach(async () => {
  await exports_.endAll();
  here.close();
  rmSync(folder, { recursive: true });
});

/** Writes, and moves the log to the database: whether all of it went. */
function logIsEmptied(): boolean {
  here.connection.exec('UPDATE validators SET low_slot = low_slot');
  return here.connection.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
}

it('an export whose reader asks in time goes on, however long it takes', async () => {
  here.stage(2, ...Array.from({ length: 300 }, (_, key) => history(2 + key, [[10, null]], [])));
  await here.merge(2);
  exports_.begin(1, undefined);
  for (const size of [200, 101]) {
    milliseconds += EXPORT_STALL_MS;
    await exports_.endStalled();
    expect(await exports_.next(1)).toHaveLength(size);
    expect(logIsEmptied()).toBe(size === 101);
  }
});

it('an export whose reader does not ask is ended, and the log can be emptied again', async () => {
  here.stage(2, ...Array.from({ length: 300 }, (_, key) => history(2 + key, [[10, null]], [])));
  await here.merge(2);
  exports_.begin(1, undefined);
  expect(await exports_.next(1)).toHaveLength(200);
  milliseconds += EXPORT_STALL_MS + 1;
  exports_.begin(2, undefined);
  await exports_.endStalled();
  await expect(exports_.next(1)).rejects.toThrow('the export is over');
  expect(await exports_.next(2)).toHaveLength(200);
  expect(logIsEmptied()).toBe(false);
  await exports_.end(2);
  expect(logIsEmptied()).toBe(true);
});

it('only so many exports are under way at once', () => {
  for (let exportId = 0; exportId < 128; exportId++) exports_.begin(exportId, undefined);
  expect(() => exports_.begin(128, undefined)).toThrow('too many exports');
});
