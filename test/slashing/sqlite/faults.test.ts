// The SQLite store when the world fails: locks of others, full disks, dead workers, altered and vanished rows.
// Whatever happens the answer is 503, for as few keys as possible, and it works again when the fault is over.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RETAINED_SLOTS } from '../../../enclave/slashing/history/prune.ts';
import { NO_MARKS } from '../../../enclave/slashing/history/rules.ts';
import { SlashingProtection } from '../../../enclave/slashing/protection.ts';
import { openSqliteBackend } from '../../../enclave/slashing/sqlite/backend.ts';
import { CLOSE_WAIT_MS } from '../../../enclave/slashing/sqlite/client.ts';
import type { SlashingBackend } from '../../../enclave/slashing/types.ts';
import { systemClock } from '../../../observe/clock.ts';
import {
  block,
  checkOne,
  collect,
  history,
  MAIN_ROOT,
  quietLog,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';

const DISK_LIMIT = fileURLToPath(new URL('../../support/slashing-disk-limit.ts', import.meta.url));

let folder: string;
let path: string;
const backends: SlashingBackend[] = [];

async function open(integrityKey?: Uint8Array): Promise<SlashingBackend> {
  const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT, integrityKey }, { log: quietLog });
  backends.push(backend);
  return backend;
}

/** Somebody who can write the file, while the signer runs. */
function tamper(...statements: string[]): void {
  const connection = new DatabaseSync(path);
  for (const statement of statements) connection.exec(statement);
  connection.close();
}

const verdict = async (backend: SlashingBackend, ...message: Parameters<typeof block>) =>
  verdictName(await checkOne(backend, block(...message)));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-faults-'));
  path = join(folder, 'slashing_protection.sqlite');
});
afterEach(async () => {
  for (const backend of backends.splice(0)) await backend.close();
  rmSync(folder, { recursive: true });
});

describe('the file', () => {
  test('is made with mode 0600, and so is everything beside it', async () => {
    await checkOne(await open(), block(1, 1, 'a'));
    for (const suffix of ['', '-wal', '-shm', '-lock']) {
      expect([suffix, (statSync(path + suffix).mode & 0o777).toString(8)]).toEqual([suffix, '600']);
    }
  });

  test('is made private again when it was opened to others', async () => {
    await (await open()).close();
    chmodSync(path, 0o664);
    await open();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['a folder', () => mkdirSync(path)],
    [
      'no database',
      () => writeFileSync(path, 'this is a text file, and long enough not to be taken for a header\n'.repeat(20)),
    ],
    [
      'in a folder that is missing',
      () => {
        path = join(folder, 'missing', 'slashing_protection.sqlite');
      },
    ],
  ])('is refused when it is %s', async (_name, prepare) => {
    prepare();
    await expect(open()).rejects.toMatchObject({ reason: 'slashing_unavailable' });
  });

  test.each([
    ['without the master key that it was made with', new Uint8Array(32).fill(1), undefined, /made with a master key/],
    ['with a master key when it was made without', undefined, new Uint8Array(32).fill(1), /made without a master key/],
    ['with another master key', new Uint8Array(32).fill(1), new Uint8Array(32).fill(2), /master key is another one/],
  ])('is refused %s', async (_name, first, second, message) => {
    await (await open(first)).close();
    await expect(open(second)).rejects.toThrow(message);
  });

  test('is refused when its schema is another version', async () => {
    await (await open()).close();
    tamper('UPDATE metadata SET schema_version = 3');
    await expect(open()).rejects.toThrow(/schema version/);
  });
});

describe('faults that pass', () => {
  test('a lock that another process holds on the database makes 503, and nothing more once it is gone', async () => {
    const backend = await open();
    await checkOne(backend, block(1, 1, 'a'));
    const other = new DatabaseSync(path);
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

  const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;
  test.skipIf(!hasPrlimit)(
    'a disk that takes no more makes 503; it works again, without a restart, when there is room',
    async () => {
      const child = spawn(process.execPath, [DISK_LIMIT, path], { stdio: ['pipe', 'pipe', 'inherit'] });
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

  test('a worker that dies makes 503 for what was asked of it, and another takes its place', async () => {
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

  test.each([
    ['', undefined, CLOSE_WAIT_MS],
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

describe.each([
  ['checksums', undefined],
  ['a master key', new Uint8Array(32).fill(9)],
])('rows that were changed behind the signer, with %s', (_name, integrityKey) => {
  /** Two keys with some history each; the second must never suffer for the first. */
  async function prepared(): Promise<SlashingBackend> {
    const backend = await open(integrityKey);
    for (const key of [1, 2]) {
      for (const slot of [10, 20, 30]) await checkOne(backend, block(key, slot, 'a'));
      for (const epoch of [1, 2, 3]) await checkOne(backend, vote(key, epoch * 2, epoch * 2 + 1, 'a'));
    }
    return backend;
  }
  const FIRST = '(SELECT min(id) FROM validators)';

  test.each([
    ['a mark of the head', `UPDATE validators SET high_slot = 5 WHERE id = ${FIRST}`],
    ['a low-water mark', `UPDATE validators SET low_slot = 1 WHERE id = ${FIRST}`],
    ['a mark that is taken away', `UPDATE validators SET high_slot = NULL WHERE id = ${FIRST}`],
    ['a number that no program writes', `UPDATE validators SET high_slot = 9223372036854775807 WHERE id = ${FIRST}`],
    ['a negative number', `UPDATE validators SET high_slot = -1 WHERE id = ${FIRST}`],
    ['the code itself', `UPDATE validators SET seal = zeroblob(length(seal)) WHERE id = ${FIRST}`],
    [
      'heads that change places',
      `UPDATE validators SET (low_slot, high_slot, seal) = (SELECT low_slot, high_slot, seal FROM validators WHERE id <> ${FIRST}) WHERE id = ${FIRST}`,
    ],
    ['the head deleted', `DELETE FROM validators WHERE id = ${FIRST}`],
  ])('%s: the next request of that key is 503, the other key goes on', async (_change, statement) => {
    const backend = await prepared();
    tamper(statement);
    const batch = [block(1, 40, 'b'), block(2, 40, 'b')];
    const verdicts = await backend.checkAndRecord(
      batch,
      batch.map(() => ({ blockSlot: null, sourceEpoch: null, targetEpoch: null })),
    );
    expect(verdicts.map(verdictName)).toEqual(['slashing_integrity', 'safe']);
  });

  test.each([
    [
      'a block with another root',
      `UPDATE blocks SET signing_root = zeroblob(32) WHERE validator = ${FIRST} AND slot = 20`,
    ],
    ['a block moved to another slot', `UPDATE blocks SET slot = 21 WHERE validator = ${FIRST} AND slot = 20`],
    ['a block deleted', `DELETE FROM blocks WHERE validator = ${FIRST} AND slot = 20`],
    [
      'a block of another key instead',
      `UPDATE blocks SET code = (SELECT code FROM blocks AS other WHERE other.slot = 20 AND other.validator <> ${FIRST}) WHERE validator = ${FIRST} AND slot = 20`,
    ],
  ])('%s: a request for which it matters is 503', async (_change, statement) => {
    const backend = await prepared();
    tamper(statement);
    expect(await verdict(backend, 1, 20, 'b')).toBe('slashing_integrity');
    expect(await verdict(backend, 1, 25, 'b')).toBe('slashing_integrity');
    expect(await verdict(backend, 2, 20, 'b')).toBe('double_block');
    expect(await verdict(backend, 2, 25, 'b')).toBe('safe');
  });

  test.each([
    ['a vote deleted', `DELETE FROM attestations WHERE validator = ${FIRST} AND target_epoch = 5`, [3, 6]],
    ['the last vote deleted', `DELETE FROM attestations WHERE validator = ${FIRST} AND target_epoch = 7`, [5, 8]],
    [
      'a vote with another source',
      `UPDATE attestations SET source_epoch = 5 WHERE validator = ${FIRST} AND target_epoch = 5`,
      [3, 6],
    ],
  ] as const)('%s: a vote that could surround it is 503', async (_change, statement, [source, target]) => {
    const backend = await prepared();
    tamper(statement);
    expect(verdictName(await checkOne(backend, vote(1, source, target, 'b')))).toBe('slashing_integrity');
    expect(verdictName(await checkOne(backend, vote(2, source, target, 'b')))).toBe('surrounding_vote');
    await expect(collect(backend.exportHistories())).rejects.toMatchObject({ reason: 'slashing_integrity' });
  });

  test('a refusal rests on the head or one row, and needs no look at the others', async () => {
    const backend = await prepared();
    tamper(
      `UPDATE attestations SET code = zeroblob(16) WHERE validator = ${FIRST} AND target_epoch = 3`,
      `UPDATE blocks SET code = zeroblob(16) WHERE validator = ${FIRST} AND slot = 20`,
    );
    expect(verdictName(await checkOne(backend, vote(1, 5, 8, 'b')))).toBe('surrounding_vote');
    expect(verdictName(await checkOne(backend, vote(1, 1, 4, 'b')))).toBe('slashing_integrity');
    expect(verdictName(await checkOne(backend, vote(1, 0, 1, 'b')))).toBe('source_below_low_water_mark');
    expect(verdictName(await checkOne(backend, vote(1, 3, 5, 'b')))).toBe('double_vote');
    expect(await verdict(backend, 1, 9, 'b')).toBe('block_below_low_water_mark');
    expect(await verdict(backend, 1, 25, 'b')).toBe('slashing_integrity');
  });

  test('a head brought back without its rows: the key is 503, and the rest of the batch is recorded', async () => {
    const backend = await prepared();
    tamper('CREATE TABLE old_validators AS SELECT * FROM validators');
    for (const key of [1, 2]) {
      await checkOne(backend, block(key, 40, 'a'));
      await checkOne(backend, vote(key, 8, 9, 'a'));
    }
    tamper(
      `DELETE FROM validators WHERE id = ${FIRST}`,
      'INSERT INTO validators SELECT * FROM old_validators WHERE id NOT IN (SELECT id FROM validators)',
    );
    for (const message of [block(1, 40, 'b'), block(1, 35, 'b'), block(1, 50, 'b'), vote(1, 7, 8, 'b')]) {
      const other = block(2, message.kind === 'block' ? message.slot + 20 : 90, 'b');
      const verdicts = await backend.checkAndRecord([message, other], [NO_MARKS, NO_MARKS]);
      expect(verdicts.map(verdictName)).toEqual(['slashing_integrity', 'safe']);
    }
  });

  test('rows left behind by a head that is gone are in the way of a new key, and of nothing else', async () => {
    const backend = await prepared();
    tamper('INSERT INTO blocks SELECT validator + 2, slot, signing_root, code FROM blocks');
    const batch = [block(3, 30, 'b'), block(2, 60, 'b')];
    const verdicts = await backend.checkAndRecord(batch, [NO_MARKS, NO_MARKS]);
    expect(verdicts.map(verdictName)).toEqual(['slashing_integrity', 'safe']);
    expect(await backend.status()).toMatchObject({ validators: 2 });
  });

  test('the newest block deleted: neither it nor another in its place is signed', async () => {
    const backend = await prepared();
    tamper(`DELETE FROM blocks WHERE validator = ${FIRST} AND slot = 30`);
    expect(await verdict(backend, 1, 30, 'a')).toBe('slashing_integrity');
    expect(await verdict(backend, 1, 30, 'b')).toBe('slashing_integrity');
  });

  test('one key rolled back to an earlier, once valid state: this process remembers more', async () => {
    const backend = await open(integrityKey);
    const protection = new SlashingProtection(backend, {}, { clock: systemClock, log: quietLog });
    for (const key of [1, 2]) await protection.check(block(key, 10, 'a'));
    tamper(
      'CREATE TABLE old_validators AS SELECT * FROM validators',
      'CREATE TABLE old_blocks AS SELECT * FROM blocks',
    );
    for (const key of [1, 2]) await protection.check(block(key, 20, 'a'));
    tamper(
      `DELETE FROM validators WHERE id = ${FIRST}`,
      'INSERT INTO validators SELECT * FROM old_validators WHERE id NOT IN (SELECT id FROM validators)',
      `DELETE FROM blocks WHERE validator = ${FIRST} AND slot = 20`,
    );
    await expect(protection.check(block(1, 20, 'b'))).rejects.toMatchObject({ reason: 'slashing_rollback' });
    await expect(protection.check(block(1, 99, 'b'))).rejects.toMatchObject({ reason: 'slashing_rollback' });
    expect(await protection.check(block(2, 21, 'b'))).toEqual({ kind: 'safe', repeat: false });
  });

  test('an import into a damaged key is refused whole; pruning leaves the damaged key alone', async () => {
    const backend = await prepared();
    for (const key of [1, 2]) await checkOne(backend, block(key, RETAINED_SLOTS + 100, 'far'));
    tamper(`UPDATE blocks SET signing_root = NULL WHERE validator = ${FIRST} AND slot = 20`);
    const file = [history(2, [[50, null]], []), history(1, [[20, null]], [])];
    await expect(backend.importHistories(stream(file))).rejects.toMatchObject({ reason: 'slashing_integrity' });
    let pruned = 0;
    for (let deleted = await backend.pruneStep(100); deleted > 0; deleted = await backend.pruneStep(100))
      pruned += deleted;
    expect(pruned).toBe(3);
    expect(await verdict(backend, 1, 25, 'b')).toBe('slashing_integrity');
    expect(await verdict(backend, 2, 25, 'b')).toBe('block_below_low_water_mark');
  });
});
