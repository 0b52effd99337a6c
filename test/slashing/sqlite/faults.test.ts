// The SQLite store when the world fails: locks of others, full disks, dead workers. Whatever happens the answer is 503,
// and it works again when the fault is over.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { WORKER_CLOSE_WAIT_MS } from '../../../signer/slashing/sqlite/checkpoints.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { lacking } from '../../support/needs.ts';
import { block, checkOne, verdictName } from '../../support/slashing.ts';
import { ownDatabase } from './own-database.ts';

const DISK_LIMIT = fileURLToPath(new URL('../../support/slashing-disk-limit.ts', import.meta.url));

const database = ownDatabase();
const { open, tamper } = database;

const verdict = async (backend: SlashingBackend, ...message: Parameters<typeof block>) =>
  verdictName(await checkOne(backend, block(...message)));

describe('the file', () => {
  it('is made with mode 0600, and so is everything beside it', async () => {
    await checkOne(await open(), block(1, 1, 'a'));
    for (const suffix of ['', '-wal', '-shm', '-lock']) {
      expect([suffix, (statSync(database.path + suffix).mode & 0o777).toString(8)]).toEqual([suffix, '600']);
    }
  });

  it('is made private again when it was opened to others', async () => {
    await (await open()).close();
    chmodSync(database.path, 0o664);
    await open();
    expect(statSync(database.path).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['a folder', () => mkdirSync(database.path)],
    [
      'no database',
      () =>
        writeFileSync(database.path, 'this is a text file, and long enough not to be taken for a header\n'.repeat(20)),
    ],
    [
      'in a folder that is missing',
      () => {
        database.path = join(database.folder, 'missing', 'slashing_protection.sqlite');
      },
    ],
  ])('is refused when it is %s', async (_name, prepare) => {
    prepare();
    await expect(open()).rejects.toMatchObject({ reason: 'slashing_unavailable' });
  });

  it.each([
    ['without the master key that it was made with', new Uint8Array(32).fill(1), undefined, /made with a master key/],
    ['with a master key when it was made without', undefined, new Uint8Array(32).fill(1), /made without a master key/],
    ['with another master key', new Uint8Array(32).fill(1), new Uint8Array(32).fill(2), /master key is another one/],
  ])('is refused %s', async (_name, first, second, message) => {
    await (await open(first)).close();
    await expect(open(second)).rejects.toThrow(message);
  });

  it('is refused when its schema is another version', async () => {
    await (await open()).close();
    tamper('UPDATE metadata SET schema_version = 3');
    await expect(open()).rejects.toThrow(/schema version/);
  });
});

describe('faults that pass', () => {
  it('a lock that another process holds on the database makes 503, and nothing more once it is gone', async () => {
    const backend = await open();
    await checkOne(backend, block(1, 1, 'a'));
    const other = new DatabaseSync(database.path);
    other.exec('BEGIN IMMEDIATE');
    await expect(checkOne(backend, block(1, 2, 'b'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await expect(backend.checkHealth(new AbortController().signal)).rejects.toMatchObject({
      reason: 'slashing_unavailable',
    });
    other.exec('ROLLBACK');
    other.close();
    await backend.checkHealth(new AbortController().signal);
    expect(await verdict(backend, 1, 2, 'c')).toBe('safe');
  });

  it.skipIf(lacking('prlimit'))(
    'a disk that takes no more makes 503; it works again, without a restart, when there is room',
    async () => {
      const child = spawn(process.execPath, [DISK_LIMIT, database.path], { stdio: ['pipe', 'pipe', 'inherit'] });
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const next = async () => (await lines.next()).value;
      const ask = (text: string) => {
        child.stdin.write(`${text}\n`);
        return next();
      };
      const limitFiles = (bytes: string) => {
        const { status } = spawnSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:unlimited`]);
        expect(status).toBe(0);
      };
      try {
        expect(await next()).toBe('ready');
        expect(await ask('1 10 a')).toBe('safe');
        limitFiles('4096');
        expect(await ask('1 11 b')).toBe('slashing_unavailable');
        expect(await ask('2 11 b')).toBe('slashing_unavailable');
        limitFiles('unlimited');
        // The failed commit is a doubt: the same block may be tried again, another in its place may not.
        expect(await ask('1 11 c')).toBe('slashing_unavailable');
        expect(await ask('1 11 b')).toBe('safe');
        expect(await ask('1 11 c')).toBe('double_block');
        expect(await ask('3 1 a')).toBe('safe');
      } finally {
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
      }
      const backend = await open();
      expect(await verdict(backend, 1, 10, 'a')).toBe('repeat');
      expect(await verdict(backend, 1, 11, 'b')).toBe('repeat');
    },
  );

  it('a worker that dies makes 503 for what was asked of it, and another takes its place', async () => {
    const workers: Worker[] = [];
    const remember = (worker: Worker) => workers.push(worker);
    process.on('worker', remember);
    try {
      const backend = await open();
      await checkOne(backend, block(1, 1, 'a'));
      const pending = checkOne(backend, block(1, 2, 'b'));
      const ended = workers[0]?.terminate();
      await expect(pending).rejects.toMatchObject({ reason: 'slashing_unavailable' });
      await ended;
      const again = () => checkOne(backend, block(2, 1, 'a')).then(verdictName, () => '503');
      await expect.poll(again).toBe('safe');
      expect(workers).toHaveLength(2);
      expect(await verdict(backend, 1, 1, 'x')).toBe('double_block');
    } finally {
      process.off('worker', remember);
    }
  });
});

describe('closing', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['', undefined, WORKER_CLOSE_WAIT_MS],
    [', in less time when there is less', 700, 700],
  ])('gives up a worker that does not answer, with 503 for what was asked of it%s', async (_when, given, waited) => {
    const backend = await open();
    await checkOne(backend, block(1, 1, 'a'));
    // A disk that hangs: the next record takes the database some seconds.
    tamper(
      `CREATE VIEW slow AS WITH RECURSIVE numbers(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers)
         SELECT value FROM numbers LIMIT 20000000`,
      'CREATE TRIGGER hang BEFORE INSERT ON blocks BEGIN SELECT count(*) FROM slow; END',
    );
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const pending = checkOne(backend, block(1, 2, 'a'));
    const closed = backend.close(given);
    vi.advanceTimersByTime(waited);
    await expect(pending).rejects.toMatchObject({ reason: 'slashing_unavailable', detail: { worker: 'given up' } });
    await closed;
  });
});
