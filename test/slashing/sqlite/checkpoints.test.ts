// Checkpoints beside the commits: what is recorded reaches the database file while the signer runs, the log stays
// bounded with and without them, and nothing of the signing path depends on them.

import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Log } from '../../../common/observe/log.ts';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import { type Checkpoints, checkpointsBesideCommits } from '../../../signer/slashing/sqlite/checkpoints.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { collect, history, MAIN_ROOT, quietLog, stream, vote } from '../../support/slashing.ts';

const KEYS = 512;
/** The bound of signer/slashing/sqlite/tables/schema.ts, 8,000 pages of 4 KiB, and what one more batch may add. */
const LOG_BOUND_BYTES = 8_000 * 4_096 * 1.5;

let folder: string;
let path: string;
let warnings: string[];
let log: Log;
let backend: SlashingBackend | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-checkpoints-'));
  path = join(folder, 'slashing_protection.sqlite');
  warnings = [];
  log = { ...quietLog, warn: (_fields: object, message: string) => void warnings.push(message) };
});
afterEach(async () => {
  await backend?.close();
  backend = undefined;
  rmSync(folder, { recursive: true });
});

async function open(): Promise<SlashingBackend> {
  backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  return backend;
}

/** Every key votes for each of the epochs. */
async function record(store: SlashingBackend, epochs: readonly number[]): Promise<void> {
  for (const epoch of epochs) {
    const votes = Array.from({ length: KEYS }, (_, key) => vote(key, epoch, epoch + 1, epoch));
    for (const verdict of await store.checkAndRecord(
      votes,
      votes.map(() => NO_MARKS),
    ))
      expect(verdict.kind).toBe('safe');
  }
}

/** Entries in the file itself, whatever is in the log beside it. */
function entriesInFile(): number {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  const connection = new DatabaseSync(url, { readOnly: true });
  try {
    const table = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE name = 'attestations'").get();
    if (table?.['count'] === 0) return 0;
    return Number(connection.prepare('SELECT count(*) AS count FROM attestations').get()?.['count']);
  } finally {
    connection.close();
  }
}

const epochs = (count: number): number[] => Array.from({ length: count }, (_, epoch) => epoch);

it('what is recorded reaches the database file while the signer runs, and all of it when it closes', async () => {
  const store = await open();
  await record(store, epochs(2));
  await vi.waitFor(() => expect(entriesInFile()).toBeGreaterThanOrEqual(KEYS), LONGEST_WAIT_MS);

  await store.close();
  backend = undefined;
  expect(entriesInFile()).toBe(2 * KEYS);
  expect(existsSync(`${path}-wal`)).toBe(false);
});

it('a store that is read, or takes a small import, starts no worker for them', async () => {
  const before = process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;
  const store = await open();
  await store.importHistories(stream([history(0, [[1, 'a']], [])]));
  await collect(store.exportHistories());
  expect(process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length).toBe(before + 1);
});

it('the log stays bounded while votes come without a pause', async () => {
  const store = await open();
  await record(store, epochs(60));
  expect(statSync(`${path}-wal`).size).toBeLessThan(LOG_BOUND_BYTES);
  await store.close();
  backend = undefined;
  expect(entriesInFile()).toBe(60 * KEYS);
});

function beside(workerUrl?: URL): Checkpoints {
  return checkpointsBesideCommits({ path }, log, workerUrl);
}

it('a worker that dies is missed by nobody: it is told once, and closing does not wait for it', async () => {
  const failing = join(folder, 'failing.mjs');
  writeFileSync(failing, "throw new Error('a test: this worker does not live')");
  const checkpoints = beside(pathToFileURL(failing));
  checkpoints.recorded(1000);
  await vi.waitFor(() => expect(warnings).toEqual(['checkpoints of the slashing database are made by its commits']), {
    timeout: LONGEST_WAIT_MS,
  });
  checkpoints.recorded(1000);
  await checkpoints.close();
  expect(warnings).toHaveLength(1);
});

it('a checkpoint that fails is told once, until one succeeds; the next one begins anew', async () => {
  const store = await open();
  await record(store, epochs(1));
  const elsewhere = checkpointsBesideCommits({ path: join(folder, 'no such folder', 'database') }, log);
  elsewhere.recorded(1000);
  await vi.waitFor(() => expect(warnings).toHaveLength(1), LONGEST_WAIT_MS);
  elsewhere.recorded(1000);
  await elsewhere.close();
  expect(warnings).toEqual(['a checkpoint of the slashing database failed: its log grows until one succeeds']);
});

it('closing without any checkpoint, and twice, is well', async () => {
  const checkpoints = beside();
  await checkpoints.close();
  await checkpoints.close();
  checkpoints.recorded(1000);
  expect(warnings).toEqual([]);
});
