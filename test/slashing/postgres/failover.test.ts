// Databases that lost commits which signers were promised: a promoted standby, a restored copy, an old primary that
// comes back. Two signers share a real server behind a proxy that leads elsewhere afterwards. Nothing slashable may be
// signed, and signing goes on by itself.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ChainTime, jumpFloor } from '../../../enclave/slashing/jump.ts';
import { SlashingProtection } from '../../../enclave/slashing/protection.ts';
import type { SlashableMessage, SlashingBackend, ValidatorHistory } from '../../../enclave/slashing/types.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres-proxy.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { block, collect, publicKeyOf, stream, vote } from '../../support/slashing.ts';
import { slashablePairs } from '../../support/slashing-checker.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

const CHAIN: ChainTime = { genesisTimeSeconds: 0, slotDurationMs: 12_000, slotsPerEpoch: 32 };
const JUMPED = 'not the one that was signed over';

interface Signer {
  readonly backend: SlashingBackend;
  /** `safe`, `repeat`, or the reason of the refusal or the error. */
  sign(message: SlashableMessage): Promise<string>;
}

let slot: number;
let primary: PostgresServer;
let proxy: PostgresProxy;
let database: string;
let log: ReturnType<typeof recordingLog>;
let released: SlashableMessage[];
let counted: string[];
const opened: { close(): Promise<void> }[] = [];
const clock = { now: () => slot * 12_000, monotonic: () => performance.now() };

beforeEach(async () => {
  slot = 1000;
  released = [];
  counted = [];
  log = recordingLog();
  primary = await startPostgres({ settings: { wal_level: 'replica', synchronous_standby_names: '' } });
  opened.push(primary);
  database = await primary.createDatabase();
  proxy = await startPostgresProxy(primary.port);
  opened.push(proxy);
});

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
});

async function signer(): Promise<Signer> {
  const url = primary.url(database).replace(`:${primary.port}/`, `:${proxy.port}/`);
  const backend = await openTestBackend(url, {
    log,
    clock,
    poolSize: 4,
    jumpFloor: jumpFloor(CHAIN, clock.now),
    onJump: (cause) => void counted.push(cause),
  });
  const protection = new SlashingProtection(backend, {}, { clock, log });
  opened.push(protection);
  return {
    backend,
    async sign(message) {
      try {
        const outcome = await protection.check(message);
        if (outcome.kind === 'refused') return outcome.reason;
        released.push(message);
        return outcome.repeat ? 'repeat' : 'safe';
      } catch (error) {
        return error instanceof Error && 'reason' in error ? String(error.reason) : 'no reason';
      }
    },
  };
}

/** The last answer that is not 503: connections that broke are found one by one, and opened again after a pause. */
async function untilDecided(one: Signer, message: SlashableMessage): Promise<string> {
  const end = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const answer = await one.sign(message);
    if (answer !== 'slashing_unavailable' || performance.now() > end) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const jumps = () => log.lines.filter(({ message }) => message.includes(JUMPED));

/** Lines that say why nothing may be signed. */
const reasons = () => log.lines.map(({ message, fields }) => `${message} ${String(fields['err'])}`).join('\n');

/** Blocks and votes of keys 1 and 2 that reach the standby, then some of key 1 that do not. */
async function signAndLose(one: Signer, other: Signer, keepBefore: () => Promise<void>): Promise<void> {
  for (const key of [1, 2]) {
    expect(await one.sign(block(key, 990, 'early'))).toBe('safe');
    expect(await other.sign(vote(key, 29, 30, 'early'))).toBe('safe');
  }
  await keepBefore();
  expect(await one.sign(block(1, 1000, 'lost'))).toBe('safe');
  expect(await one.sign(vote(1, 30, 31, 'lost'))).toBe('safe');
}

/** What the lost messages make slashable, asked of a signer that does not know of them. */
async function askForRivals(other: Signer): Promise<void> {
  const rivals = [block(1, 1000, 'rival'), vote(1, 30, 31, 'rival'), vote(1, 29, 32, 'rival')];
  const answers: string[] = [];
  for (const rival of rivals) answers.push(await untilDecided(other, rival));
  expect(slashablePairs(released)).toEqual([]);
  expect(answers).not.toContain('safe');
}

/** Two epochs later both sign again, without anybody's help. */
async function expectGoingOn(signers: readonly Signer[]): Promise<void> {
  slot += 64;
  const epoch = Math.floor(slot / 32);
  for (const [index, one] of signers.entries()) {
    for (const key of [1, 2]) {
      expect(await untilDecided(one, block(key, slot + index, 'after'))).toBe('safe');
      expect(await untilDecided(one, vote(key, epoch - 1, epoch + index, 'after'))).toBe('safe');
    }
  }
  expect(slashablePairs(released)).toEqual([]);
}

describe('an asynchronous failover that loses commits', () => {
  test('nothing slashable is signed by another signer, one jump is made, and signing goes on', async () => {
    const [one, other] = [await signer(), await signer()];
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, async () => {
      await standby.catchUp();
      await standby.stopReceiving();
    });
    await standby.promote();
    proxy.switchTo(standby.port, 'cut');
    await askForRivals(other);
    expect(slashablePairs(released)).toEqual([]);
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
    expect(counted).toEqual(['other_server']);
    expect((await one.backend.identity()).floor).toEqual({ slot: 1001, sourceEpoch: 30, targetEpoch: 31 });
  });

  test('signers that meet it at the same time make one jump between them', async () => {
    const signers = await Promise.all(Array.from({ length: 4 }, signer));
    const [one, other] = signers;
    if (one === undefined || other === undefined) throw new Error('four signers');
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, async () => {
      await standby.catchUp();
      await standby.stopReceiving();
    });
    await standby.promote();
    proxy.switchTo(standby.port, 'cut');
    await Promise.all(signers.map((each, key) => untilDecided(each, block(1, 1000, `rival ${key}`))));
    await expectGoingOn(signers.slice(0, 2));
    expect(jumps()).toHaveLength(1);
    expect(counted).toEqual(['other_server']);
  });

  test('a connection that was made to the standby and lives through its promotion signs nothing by itself', async () => {
    const [one, other] = [await signer(), await signer()];
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, async () => {
      await standby.catchUp();
      await standby.stopReceiving();
    });
    proxy.switchTo(standby.port, 'cut');
    await expect.poll(() => other.backend.status().catch(() => undefined)).toBeDefined();
    const sessions = async () => {
      const text = "SELECT pid FROM pg_stat_activity WHERE application_name = 'strongroom' ORDER BY pid";
      return (await standby.query('postgres', text)).map(({ pid }) => pid);
    };
    const before = await sessions();
    expect(before).not.toEqual([]);
    await standby.promote();
    await askForRivals(other);
    expect(await sessions()).toEqual(expect.arrayContaining(before));
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
  });

  test.each(['a signer that lives through it', 'one that starts afterwards'])(
    'a file that is exported before anything was signed there refuses what was lost: by %s',
    async (who) => {
      const [one, other] = [await signer(), await signer()];
      const standby = await primary.startStandby();
      opened.push(standby);
      await signAndLose(one, other, async () => {
        await standby.catchUp();
        await standby.stopReceiving();
      });
      await standby.promote();
      proxy.switchTo(standby.port, 'cut');
      const { backend } = who === 'one that starts afterwards' ? await signer() : other;
      let file: ValidatorHistory[] = [];
      const exported = async () => {
        file = await collect(backend.exportHistories([publicKeyOf(1)]));
        return file.length;
      };
      await expect.poll(() => exported().catch(() => 0)).toBe(1);
      // The key goes on elsewhere, with what the file says.
      await standby.query('postgres', 'CREATE DATABASE elsewhere');
      const elsewhere = await openTestBackend(standby.url('elsewhere'), { log });
      const protection = new SlashingProtection(elsewhere, {}, { clock, log });
      opened.push(protection);
      await elsewhere.importHistories(stream(file));
      for (const rival of [block(1, 1000, 'rival'), vote(1, 30, 31, 'rival'), vote(1, 29, 32, 'rival')]) {
        const answer = await protection.check(rival);
        if (answer.kind === 'safe') released.push(rival);
      }
      expect(slashablePairs(released)).toEqual([]);
      expect(jumps()).toHaveLength(1);
    },
  );

  test('with a clock that is behind what was signed nothing is signed, and the log says what to do', async () => {
    const [one, other] = [await signer(), await signer()];
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, async () => {
      await standby.catchUp();
      await standby.stopReceiving();
    });
    await standby.promote();
    proxy.switchTo(standby.port, 'cut');
    slot = 900;
    await expect
      .poll(async () => {
        await other.sign(block(3, 1000, 'new'));
        return reasons();
      })
      .toContain('clock of this signer is behind');
    expect(await other.sign(block(4, 1000, 'new'))).toBe('slashing_unavailable');
    // By hand, as `strongroom slashing jump` does it.
    await other.backend.jump({ slot: 1010, sourceEpoch: 31, targetEpoch: 32 });
    slot = 1010;
    await askForRivals(other);
    await expectGoingOn([other, one]);
    expect(jumps()).toEqual([]);
  });

  test('an old primary that comes back is noticed by a signer that has signed over the new one', async () => {
    const [one, other] = [await signer(), await signer()];
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, () => standby.catchUp());
    await standby.catchUp();
    await standby.promote();
    proxy.switchTo(standby.port, 'cut');
    slot = 1050;
    expect(await untilDecided(one, block(1, 1050, 'jumped over'))).toBe('block_below_low_water_mark');
    slot = 1060;
    expect(await untilDecided(one, block(1, 1060, 'on the new primary'))).toBe('safe');
    proxy.switchTo(primary.port, 'cut');
    expect(await untilDecided(one, block(2, 1060, 'unknown here'))).not.toBe('safe');
    expect(await untilDecided(other, block(1, 1060, 'rival'))).not.toBe('safe');
    await expectGoingOn([other, one]);
  });
});

describe('a copy of the files that is restored in the place of the database', () => {
  const restoreTheCopy = async () => {
    await primary.stop('fast');
    primary.restoreFiles();
    await primary.start();
  };
  const saveTheFiles = async () => {
    await primary.stop('fast');
    primary.saveFiles();
    await primary.start();
  };

  test('is noticed by a signer that lives through it, which raises it for all', async () => {
    const [one, other] = [await signer(), await signer()];
    await signAndLose(one, other, async () => {
      await saveTheFiles();
      expect(await untilDecided(one, block(7, 1, 'reconnect'))).toBe('safe');
    });
    await restoreTheCopy();
    // A message of another key: nothing that this signer knows of the key is missing.
    expect(await untilDecided(one, block(2, 1001, 'elsewhere'))).toBe('block_below_low_water_mark');
    await askForRivals(other);
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
  });

  test('is noticed by a signer that only looked at the database since the copy was made', async () => {
    const [one, other] = [await signer(), await signer()];
    await signAndLose(one, other, async () => {
      await saveTheFiles();
      expect(await untilDecided(one, block(7, 1, 'reconnect'))).toBe('safe');
    });
    await primary.query(database, 'CREATE TABLE other_work AS SELECT generate_series(1, 20000)');
    const { signal } = new AbortController();
    await expect
      .poll(() =>
        other.backend.checkHealth(signal).then(
          () => 'up',
          () => 'down',
        ),
      )
      .toBe('up');
    await restoreTheCopy();
    await askForRivals(other);
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
  });

  test('a crash of the server loses nothing and costs nothing: no jump', async () => {
    const [one, other] = [await signer(), await signer()];
    for (let round = 0; round < 5; round += 1) {
      slot += 1;
      expect(await untilDecided(one, block(1, slot, round))).toBe('safe');
      expect(await untilDecided(other, block(2, slot, round))).toBe('safe');
      await primary.stop('immediate');
      await primary.start();
    }
    expect(await untilDecided(other, block(1, slot, 'rival'))).toBe('double_block');
    expect(jumps()).toEqual([]);
  });
});
