// Commits to PostgreSQL: what a lost one leaves, what one waits for, and that every wait has an end. An answer in doubt
// is 503.

import { Client } from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import type { SignerError } from '../../../signer/api/errors.ts';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres-proxy.ts';
import { block, checkOne, collect, history, publicKeyOf, stream, verdictName } from '../../support/slashing.ts';
import { database, open, opened, server, until } from './signers-set-up.ts';

describe('a commit that goes wrong', () => {
  let proxy: PostgresProxy;

  beforeEach(async () => {
    proxy = await startPostgresProxy(server.port);
    opened.push(proxy);
  });

  const throughProxy = () => server.url(database).replace(`:${server.port}/`, `:${proxy.port}/`);

  it('whose answer is lost is refused with 503, and its record stands', async () => {
    const backend = await open({}, throughProxy());
    await checkOne(backend, block(1, 1, 'a'));
    proxy.setFault('lose_answer');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('double_block');
    expect(verdictName(await checkOne(backend, block(1, 2, 'a')))).toBe('repeat');
  });

  it('that never arrives is refused with 503, and leaves no record', async () => {
    const backend = await open({}, throughProxy());
    await checkOne(backend, block(1, 1, 'a'));
    proxy.setFault('lose_commit');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(verdictName(await checkOne(backend, block(1, 2, 'b')))).toBe('safe');
  });

  it('about which nothing is heard is given up, with 503', async () => {
    const backend = await open({ timeouts: { answerMs: 1_000 } }, throughProxy());
    // A server that answers may take longer on a busy machine: then it is asked again.
    const verdict = (message: SlashableMessage) =>
      checkOne(backend, message).then(verdictName, ({ reason }: SignerError) => reason);
    await expect.poll(() => verdict(block(1, 1, 'a'))).toMatch(/^(safe|repeat)$/);
    proxy.setFault('silence');
    expect(await verdict(block(1, 2, 'a'))).toBe('slashing_unavailable');
    proxy.setFault(undefined);
    await expect.poll(() => verdict(block(1, 2, 'b'))).toBe('double_block');
  });

  it('an import whose commit is lost is rejected, and another one merges with what there is', async () => {
    const backend = await open({}, throughProxy());
    const histories = [history(1, [[5, null]], [])];
    proxy.setFault('lose_commit');
    await expect(backend.importHistories(stream(histories))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    proxy.setFault(undefined);
    expect(await collect(backend.exportHistories())).toEqual([]);
    expect(await backend.importHistories(stream(histories))).toMatchObject({ blocks: 1, alreadyPresent: 0 });
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

  it('for the lock on a key: 503, nothing recorded, other keys go on', async () => {
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

  it('not even so long for an import: its keys are 503 at once and undecided, the rest of a batch goes on', async () => {
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

  it('for a statement: 503, nothing recorded', async () => {
    const backend = await open({ timeouts: { statementMs: 100 } });
    await other.query('LOCK TABLE strongroom.blocks IN ACCESS EXCLUSIVE MODE');
    await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await other.query('ROLLBACK');
    // Without the lock a statement may take as long on a busy machine, and is asked again; a repeat says the same.
    const verdict = () => checkOne(backend, block(1, 2, 'b')).then(verdictName, ({ reason }: SignerError) => reason);
    await expect.poll(verdict).toMatch(/^(safe|repeat)$/);
  });
});

describe('a commit whose standby is away', () => {
  let replicated: PostgresServer;
  let name: string;

  const configure = async (change: string): Promise<void> => {
    await replicated.query('postgres', `ALTER SYSTEM ${change}`);
    await replicated.query('postgres', 'SELECT pg_reload_conf()');
  };
  const waiting = (what = '1') =>
    replicated.query('postgres', `SELECT ${what} FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'SyncRep'`, [
      name,
    ]);
  const verdict = (backend: SlashingBackend) =>
    checkOne(backend, block(1, 2, 'a')).then(verdictName, ({ reason }: SignerError) => reason);

  beforeEach(async () => {
    replicated = await startPostgres({ settings: { wal_level: 'replica', synchronous_standby_names: '' } });
    name = await replicated.createDatabase();
  });

  it('and whose wait an administrator cancels is refused with 503, and its repeat waits as well', async () => {
    const backend = await open({}, replicated.url(name));
    opened.push(replicated);
    await checkOne(backend, block(1, 1, 'a'));
    await configure("SET synchronous_standby_names = 'away'");
    for (const attempt of ['first', 'repeat']) {
      const answer = verdict(backend);
      await until(async () => (await waiting('pg_cancel_backend(pid)')).length === 1);
      expect([attempt, await answer]).toEqual([attempt, 'slashing_unavailable']);
    }
    await configure('RESET synchronous_standby_names');
    await expect.poll(() => verdict(backend)).toBe('repeat');
  });

  it('is refused with 503 when its time is over, and leaves no process waiting at the server', async () => {
    const patient = await open({}, replicated.url(name));
    const backend = await open({ timeouts: { answerMs: 1_000 } }, replicated.url(name));
    opened.push(replicated);
    await checkOne(patient, block(1, 1, 'a'));
    await configure("SET synchronous_standby_names = 'away'");
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await verdict(backend)).toBe('slashing_unavailable');
    await until(async () => (await waiting()).length === 0);
    await configure('RESET synchronous_standby_names');
    await expect.poll(() => verdict(patient)).toBe('repeat');
  });
});

it('a commit waits for the disk whatever the role is set to', async () => {
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
