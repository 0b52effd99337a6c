// Several signers on one PostgreSQL, and a PostgreSQL that fails: never two winners, never an answer in doubt, and when
// the trouble is over it works again by itself.

import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NO_MARKS } from '../../../enclave/slashing/history/rules.ts';
import { SlashingProtection } from '../../../enclave/slashing/protection.ts';
import type { SlashableMessage, SlashingBackend } from '../../../enclave/slashing/types.ts';
import { systemClock } from '../../../observe/clock.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres-proxy.ts';
import {
  block,
  checkOne,
  collect,
  history,
  publicKeyOf,
  quietLog,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { areSlashable, randomMessages } from '../../support/slashing-model.ts';
import { openTestBackend, type TestBackendOptions } from '../../support/slashing-postgres.ts';

const SIGNERS = 4;

let server: PostgresServer;
let database: string;
const opened: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

beforeEach(async () => {
  database = await server.createDatabase();
});

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function open(options: TestBackendOptions = {}, url = server.url(database)): Promise<SlashingBackend> {
  const backend = await openTestBackend(url, options);
  opened.push(backend);
  return backend;
}

async function openSigners(options: TestBackendOptions = {}): Promise<SlashingProtection[]> {
  return Promise.all(
    Array.from({ length: SIGNERS }, async () => {
      return new SlashingProtection(await open(options), {}, { clock: systemClock, log: quietLog });
    }),
  );
}

async function safeOnes(messages: readonly SlashableMessage[], signers: readonly SlashingProtection[]) {
  const settled = await Promise.all(
    messages.map(async (message, index) => {
      const outcome = await at(signers, index % signers.length)
        .check(message)
        .catch(() => undefined);
      return outcome?.kind === 'safe' ? [message] : [];
    }),
  );
  return settled.flat();
}

describe('signers racing on one database', () => {
  const races: Record<string, (round: number, racer: number) => SlashableMessage> = {
    'blocks at one slot': (round, racer) => block(1, 10 + round, `${round} ${racer}`),
    'votes for one target': (round, racer) => vote(1, round, 10 + round, `${round} ${racer}`),
    'votes that surround each other': (round, racer) =>
      vote(1, 1000 * round + racer, 1000 * round + 900 - racer, racer),
  };

  test.each(Object.entries(races))(
    `64 conflicting requests over ${SIGNERS} signers (%s): exactly one wins, every round`,
    async (_name, message) => {
      const signers = await openSigners();
      for (let round = 0; round < 10; round += 1) {
        const racers = Array.from({ length: 64 }, (_, racer) => message(round, racer));
        expect(await safeOnes(racers, signers)).toHaveLength(1);
      }
    },
  );

  test('random messages of a few keys over all signers: no two that were found safe are slashable', async () => {
    const signers = await openSigners();
    const messages = randomMessages({ count: 800, keys: 4, span: 60, seed: 64 });
    const safe: SlashableMessage[] = [];
    for (let start = 0; start < messages.length; start += 64) {
      safe.push(...(await safeOnes(messages.slice(start, start + 64), signers)));
    }
    expect(safe.length).toBeGreaterThan(100);
    expectNoneSlashable(safe);
  });

  test('batches that name the same keys in opposite orders do not lock each other out', async () => {
    const [one, other] = [await open(), await open()];
    const keys = Array.from({ length: 40 }, (_, key) => key);
    for (let slot = 1; slot <= 15; slot += 1) {
      const forward = keys.map((key) => block(key, slot, 'a'));
      const backward = keys.toReversed().map((key) => block(key, slot, 'b'));
      const none = forward.map(() => NO_MARKS);
      const [first, second] = await Promise.all([
        one.checkAndRecord(forward, none),
        other.checkAndRecord(backward, none),
      ]);
      // Whole batches are ordered, so one of them has it all.
      const winners = [first, second].map((verdicts) => verdicts.filter(({ kind }) => kind === 'safe').length);
      expect(winners.toSorted()).toEqual([0, keys.length].toSorted());
    }
  });

  test('signers that meet the same new keys at the same time all get verdicts', async () => {
    const signers = await Promise.all(Array.from({ length: SIGNERS }, () => open()));
    const batch = Array.from({ length: 60 }, (_, key) => block(key, 1, 'same'));
    const answers = await Promise.all(
      signers.map((signer) =>
        signer.checkAndRecord(
          batch,
          batch.map(() => NO_MARKS),
        ),
      ),
    );
    expect(new Set(answers.flat().map(({ kind }) => kind))).toEqual(new Set(['safe']));
    expect(await at(signers, 0).status()).toMatchObject({ validators: 60, blocks: 60 });
  });
});

test('two imports of many keys at once both succeed, whatever the order of their files', async () => {
  const [one, other] = [await open(), await open()];
  const histories = Array.from({ length: 700 }, (_, key) => history(key, [[5, 'a']], []));
  const summaries = await Promise.all([
    one.importHistories(stream(histories)),
    other.importHistories(stream(histories.toReversed())),
  ]);
  expect(summaries.map(({ alreadyPresent }) => alreadyPresent).toSorted()).toEqual([0, 700]);
});

describe('a commit that goes wrong', () => {
  let proxy: PostgresProxy;

  beforeEach(async () => {
    proxy = await startPostgresProxy(server.port);
    opened.push(proxy);
  });

  const throughProxy = () => server.url(database).replace(`:${server.port}/`, `:${proxy.port}/`);

  test('whose answer is lost is refused with 503, and its record stands', async () => {
    const backend = await open({}, throughProxy());
    await checkOne(backend, block(1, 1, 'a'));
    proxy.setFault('lose_answer');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('double_block');
    expect(verdictName(await checkOne(backend, block(1, 2, 'a')))).toBe('repeat');
  });

  test('that never arrives is refused with 503, and leaves no record', async () => {
    const backend = await open({}, throughProxy());
    await checkOne(backend, block(1, 1, 'a'));
    proxy.setFault('lose_commit');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('safe');
  });

  test('about which nothing is heard is given up, with 503', async () => {
    const backend = await open({ timeouts: { answerMs: 300 } }, throughProxy());
    await checkOne(backend, block(1, 1, 'a'));
    proxy.setFault('silence');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('double_block');
  });

  test('an import whose commit is lost is rejected, and another one merges with what there is', async () => {
    const backend = await open({}, throughProxy());
    const histories = [history(1, [[5, null]], [])];
    proxy.setFault('lose_commit');
    await expect(backend.importHistories(stream(histories))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(await collect(backend.exportHistories())).toEqual([]);
    expect(await backend.importHistories(stream(histories))).toMatchObject({ blocks: 1, alreadyPresent: 0 });
  });
});

describe('a database that fails', () => {
  test('sessions that are terminated under load: no safe answer without its record, no two that are slashable', async () => {
    const signers = await openSigners();
    const safe: SlashableMessage[] = [];
    for (let round = 1; round <= 20; round += 1) {
      const racers = Array.from({ length: 32 }, (_, racer) => block(racer % 8, round, `${round} ${racer}`));
      const work = safeOnes(racers, signers);
      await server.query(
        'postgres',
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()',
        [database],
      );
      safe.push(...(await work));
    }
    expectNoneSlashable(safe);
    await expectRecorded(safe);
    expect(await untilSafe(at(signers, 0), (attempt) => block(1, 1000 + attempt, 'after'))).toBe('safe');
  });

  test.each(['fast', 'immediate'] as const)(
    'a primary restarted under load (%s): every safe answer is on disk, and all signers recover by themselves',
    async (mode) => {
      const signers = await openSigners();
      const safe: SlashableMessage[] = [];
      const rounds = { current: 0, stop: false };
      const load = (async () => {
        while (!rounds.stop) {
          rounds.current += 1;
          const round = rounds.current;
          const racers = Array.from({ length: 32 }, (_, racer) =>
            vote(racer % 8, round, round + 1, `${round} ${racer}`),
          );
          safe.push(...(await safeOnes(racers, signers)));
        }
      })();
      await until(() => rounds.current >= 5);
      await server.stop(mode);
      await server.start();
      for (const [index, signer] of signers.entries()) {
        const next = (attempt: number) => block(100 + index, attempt + 1, 'after');
        expect(await untilSafe(signer, next)).toBe('safe');
      }
      rounds.stop = true;
      await load;
      expect(safe.length).toBeGreaterThan(8);
      expectNoneSlashable(safe);
      await expectRecorded(safe);
    },
  );

  test('while it is gone it is asked only now and then, and what is asked in between is refused at once', async () => {
    let now = 0;
    const clock = { now: () => now, monotonic: () => now };
    const backend = await open({ clock });
    await checkOne(backend, block(1, 1, 'a'));
    await server.stop('fast');
    const unavailable = { reason: 'slashing_unavailable' };
    // The first may still find the broken connection, the second cannot make one.
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject(unavailable);
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject(unavailable);
    await server.start();
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject(unavailable);
    await expect(backend.checkHealth(new AbortController().signal)).rejects.toMatchObject(unavailable);
    now += 1_000;
    expect(verdictName(await checkOne(backend, block(1, 2, 'a')))).toBe('safe');
    await backend.checkHealth(new AbortController().signal);
  });

  test('a health check ends when its signal does', async () => {
    const backend = await open();
    const controller = new AbortController();
    const health = backend.checkHealth(controller.signal);
    controller.abort();
    await expect(health).rejects.toMatchObject({ reason: 'slashing_unavailable' });
  });

  test('a database that takes no writes is unhealthy', async () => {
    const backend = await open();
    await server.query('postgres', `ALTER DATABASE ${database} SET default_transaction_read_only = on`);
    const later = await open().catch((error: unknown) => error);
    expect(later).toMatchObject({ reason: 'slashing_unavailable' });
    await server.query(
      'postgres',
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()',
      [database],
    );
    await expect(backend.checkHealth(new AbortController().signal)).rejects.toMatchObject({
      reason: 'slashing_unavailable',
    });
  });
});

describe('waits have an end', () => {
  let other: Client;

  beforeEach(async () => {
    const backend = await open();
    await checkOne(backend, block(1, 1, 'a'));
    await checkOne(backend, block(2, 1, 'a'));
    other = new Client({ connectionString: server.url(database), ssl: false });
    await other.connect();
    opened.push({ close: () => other.end() });
    await other.query('BEGIN');
  });

  test('for the lock on a key: 503, nothing recorded, other keys go on', async () => {
    const backend = await open({ timeouts: { lockMs: 100 } });
    await other.query('SELECT FROM strongroom.validators WHERE public_key = $1 FOR UPDATE', [
      Buffer.from(publicKeyOf(1).slice(2), 'hex'),
    ]);
    const batch = [block(3, 2, 'a'), block(1, 2, 'a'), block(2, 2, 'a')];
    const verdicts = await backend.checkAndRecord(
      batch,
      batch.map(() => NO_MARKS),
    );
    expect(verdicts.map(verdictName)).toEqual(['safe', 'slashing_unavailable', 'safe']);
    await other.query('ROLLBACK');
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('safe');
  });

  test('not even so long for an import: its keys are 503 at once and undecided, the rest of a batch goes on', async () => {
    const backend = await open({ timeouts: { lockMs: 3_600_000, statementMs: 3_600_000, answerMs: 3_600_000 } });
    await other.query('SELECT FROM strongroom.validators WHERE public_key = $1 FOR UPDATE', [
      Buffer.from(publicKeyOf(2).slice(2), 'hex'),
    ]);
    // Key 1 and a new key are locked by the import, which waits for key 2.
    const histories = [history(1, [[50, 'i']], []), history(2, [[50, 'i']], []), history(0, [[50, 'i']], [])];
    const imported = backend.importHistories(stream(histories));
    await until(async () => {
      const waiting = await server.query(
        'postgres',
        "SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'",
        [database],
      );
      return waiting.length === 1;
    });
    const batch = [block(3, 2, 'a'), block(1, 40, 'a'), block(0, 40, 'a')];
    const verdicts = await backend.checkAndRecord(
      batch,
      batch.map(() => NO_MARKS),
    );
    expect(verdicts.map(verdictName)).toEqual(['safe', 'slashing_unavailable', 'slashing_unavailable']);
    await other.query('ROLLBACK');
    expect(await imported).toMatchObject({ blocks: 3, alreadyPresent: 0 });
    expect(verdictName(await checkOne(backend, block(1, 50, 'x')))).toBe('double_block');
    expect(verdictName(await checkOne(backend, block(0, 40, 'a')))).toBe('block_below_low_water_mark');
    // What was undecided was not recorded either: it is no repeat, and the file is merged as minimal beside the record.
    expect(verdictName(await checkOne(backend, block(1, 40, 'a')))).toBe('block_below_low_water_mark');
    expect(verdictName(await checkOne(backend, block(1, 51, 'b')))).toBe('safe');
  });

  test('for a statement: 503, nothing recorded', async () => {
    const backend = await open({ timeouts: { statementMs: 100 } });
    await other.query('LOCK TABLE strongroom.blocks IN ACCESS EXCLUSIVE MODE');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await other.query('ROLLBACK');
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('safe');
  });
});

test('a commit waits for the disk whatever the role is set to', async () => {
  await server.query('postgres', `ALTER DATABASE ${database} SET synchronous_commit = off`);
  const backend = await open();
  // Recorded by a trigger within the transaction: what is in force when the record is written.
  await server.query(
    database,
    `CREATE TABLE seen (setting text);
     CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
     CREATE TRIGGER note AFTER INSERT ON strongroom.blocks FOR EACH ROW EXECUTE FUNCTION note()`,
  );
  await checkOne(backend, block(1, 1, 'a'));
  expect(await server.query(database, 'SELECT setting FROM seen')).toEqual([{ setting: 'on' }]);
});

function expectNoneSlashable(safe: readonly SlashableMessage[]): void {
  const byKey = Map.groupBy(safe, ({ publicKey }) => publicKey);
  for (const messages of byKey.values()) {
    for (const [index, message] of messages.entries()) {
      const clash = messages.slice(index + 1).find((later) => areSlashable(message, later));
      expect([message, clash]).toEqual([message, undefined]);
    }
  }
}

/** The rows themselves: an export leaves out what pruning would forget. */
async function expectRecorded(safe: readonly SlashableMessage[]): Promise<void> {
  const rows = await server.query(
    database,
    `SELECT encode(v.public_key, 'hex') AS key, e.place::int, e.signing_root
     FROM (SELECT validator_id, slot AS place, signing_root FROM strongroom.blocks
           UNION ALL SELECT validator_id, target_epoch, signing_root FROM strongroom.attestations) e
     JOIN strongroom.validators v ON v.id = e.validator_id`,
  );
  const placeOfRow = (row: Record<string, unknown>) =>
    placeOf(`0x${String(row['key'])}`, Number(row['place']), row['signing_root'] as Buffer | null);
  const places = new Set(rows.map(placeOfRow));
  const missing = safe.filter((message) => {
    const place = message.kind === 'block' ? message.slot : message.targetEpoch;
    return !places.has(placeOf(message.publicKey, place, message.signingRoot));
  });
  expect(missing).toEqual([]);
}

function placeOf(publicKey: string, place: number, signingRoot: Uint8Array | null): string {
  return `${publicKey} ${place} ${signingRoot === null ? 'none' : Buffer.from(signingRoot).toString('hex')}`;
}

/** Asks again while the answer is 503; the test's own timeout is the limit. */
async function untilSafe(signer: SlashingProtection, message: (attempt: number) => SlashableMessage): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await signer.check(message(attempt)).catch(() => undefined);
    if (outcome !== undefined) return outcome.kind;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

function at<Element>(list: readonly Element[], index: number): Element {
  const element = list[index];
  if (element === undefined) throw new Error('no such element');
  return element;
}
