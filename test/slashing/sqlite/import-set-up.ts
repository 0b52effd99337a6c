// A database of SQLite with some history, in a folder of the test, that is opened as a signer opens it or step by step.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';
import { type RowIntegrity, rowIntegrity } from '../../../signer/slashing/history/codes.ts';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { block, checkOne, MAIN_ROOT, quietLog, vote } from '../../support/slashing.ts';
import { type OnTurn, storeInProcess } from '../../support/slashing-in-process.ts';

export const IMPORT_STEPS = fileURLToPath(new URL('../../support/slashing-import-steps.ts', import.meta.url));
export const MANY = 900_000;

export let folder: string;
export let path: string;
const backends: SlashingBackend[] = [];

export async function open(file = path): Promise<SlashingBackend> {
  const backend = await openSqliteBackend({ path: file, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  backends.push(backend);
  return backend;
}

export async function close(backend: SlashingBackend): Promise<void> {
  backends.splice(backends.indexOf(backend), 1);
  await backend.close();
}

/** A database of this process, without a worker. */
export function openHere(onTurn: OnTurn = () => undefined, hash?: RowIntegrity['hash']) {
  writeFileSync(path, '', { mode: 0o600 });
  const genesisValidatorsRoot = new Uint8Array(32);
  const integrity = rowIntegrity({ genesisValidatorsRoot });
  const counted = hash === undefined ? integrity : { ...integrity, hash };
  return storeInProcess({ path, genesisValidatorsRoot, integrity: counted }, onTurn);
}

/** Keys 1 to 3 have signed something. */
export async function prepare(): Promise<void> {
  const backend = await open();
  for (const key of [1, 2, 3]) {
    await checkOne(backend, block(key, 100, 'a'));
    await checkOne(backend, vote(key, 9, 10, 'a'));
  }
  await close(backend);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-import-'));
  path = join(folder, 'slashing_protection.sqlite');
});
afterEach(async () => {
  for (const backend of backends.splice(0)) await backend.close();
  rmSync(folder, { recursive: true });
});
