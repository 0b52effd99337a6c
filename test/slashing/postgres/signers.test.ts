// Several signers on one PostgreSQL, and a PostgreSQL that fails: never two winners, never a safe answer without its
// record, and when the trouble is over it works again by itself.

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import type { SlashableMessage } from '../../../signer/slashing/types.ts';
import { IS_WHOLE, sized } from '../../support/scale.ts';
import { block, checkOne, history, stream, verdictName, vote } from '../../support/slashing.ts';
import { randomMessages } from '../../support/slashing-model.ts';
import {
  at,
  database,
  expectNoneSlashable,
  expectRecorded,
  open,
  openSigners,
  SIGNERS,
  safeOnes,
  server,
  until,
  untilSafe,
} from './signers-set-up.ts';

const RACE_ROUNDS = sized(3, 10);
const RANDOM_MESSAGES = IS_WHOLE ? 800 : 320;
const MIN_SAFE = IS_WHOLE ? 100 : 40;
const TERMINATIONS = sized(6, 20);
const IMPORTED_KEYS = sized(300, 700);

describe('signers racing on one database', () => {
  const races: Record<string, (round: number, racer: number) => SlashableMessage> = {
    'blocks at one slot': (round, racer) => block(1, 10 + round, `${round} ${racer}`),
    'votes for one target': (round, racer) => vote(1, round, 10 + round, `${round} ${racer}`),
    'votes that surround each other': (round, racer) =>
      vote(1, 1000 * round + racer, 1000 * round + 900 - racer, racer),
  };

  it.each(Object.entries(races))(
    `64 conflicting requests over ${SIGNERS} signers (%s): exactly one wins, every round`,
    async (_name, message) => {
      const signers = await openSigners();
      for (let round = 0; round < RACE_ROUNDS; round += 1) {
        const racers = Array.from({ length: 64 }, (_, racer) => message(round, racer));
        expect(await safeOnes(racers, signers)).toHaveLength(1);
      }
    },
  );

  it('random messages of a few keys over all signers: no two that were found safe are slashable', async () => {
    const signers = await openSigners();
    const messages = randomMessages({ count: RANDOM_MESSAGES, keys: 4, span: 60, seed: 64 });
    const safe: SlashableMessage[] = [];
    for (let start = 0; start < messages.length; start += 64) {
      safe.push(...(await safeOnes(messages.slice(start, start + 64), signers)));
    }
    expect(safe.length).toBeGreaterThan(MIN_SAFE);
    expectNoneSlashable(safe);
  });

  it('batches that name the same keys in opposite orders do not lock each other out', async () => {
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

  it('signers that meet the same new keys at the same time all get verdicts', async () => {
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

it('two imports of many keys at once both succeed, whatever the order of their files', async () => {
  const [one, other] = [await open(), await open()];
  const histories = Array.from({ length: IMPORTED_KEYS }, (_, key) => history(key, [[5, 'a']], []));
  const summaries = await Promise.all([
    one.importHistories(stream(histories)),
    other.importHistories(stream(histories.toReversed())),
  ]);
  // Key by key: each entry is new to one of the two, and found present by the other.
  expect(summaries.map(({ validators, conflicts }) => [validators, conflicts])).toEqual([
    [IMPORTED_KEYS, 0],
    [IMPORTED_KEYS, 0],
  ]);
  expect(summaries.reduce((sum, { alreadyPresent }) => sum + alreadyPresent, 0)).toBe(IMPORTED_KEYS);
  expect(await one.status()).toMatchObject({ validators: IMPORTED_KEYS, blocks: IMPORTED_KEYS });
});

describe('a database that fails', () => {
  it('sessions that are terminated under load: no safe answer without its record, no two that are slashable', async () => {
    const signers = await openSigners();
    const safe: SlashableMessage[] = [];
    for (let round = 1; round <= TERMINATIONS; round += 1) {
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

  it.each(['fast', 'immediate'] as const)(
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
          const found = await safeOnes(racers, signers);
          safe.push(...found);
          // While it is gone refusals come at once, which would keep its start from the processor.
          if (found.length === 0) await pause(5);
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

  it('while it is gone it is asked only now and then, and what is asked in between is refused at once', async () => {
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

  it('a database that takes no writes is unhealthy', async () => {
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
