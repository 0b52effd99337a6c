// A primary that may be copied or followed, with a database that is new for every test, and signers that reach it
// through a proxy which may lead elsewhere afterwards; what they released is kept.

import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { confirmedPresent } from '../../../signer/slashing/doubt/clock.ts';
import { openDoubts } from '../../../signer/slashing/doubt/doubts.ts';
import { type ChainTime, FLEET_TOLERANCE } from '../../../signer/slashing/future.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import { type RestrainedStore, restrainStore } from '../../../signer/slashing/restraints.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { type PostgresServer, type PostgresStandby, startPostgres } from '../../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres-proxy.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { block, vote } from '../../support/slashing.ts';
import { slashablePairs } from '../../support/slashing-checker.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

const CHAIN: ChainTime = {
  genesisTimeSeconds: 0,
  slotDurationMs: 12_000,
  slotsPerEpoch: 32,
  tolerance: FLEET_TOLERANCE,
};
const JUMPED = 'not the one that was signed over';

interface Signer {
  readonly backend: SlashingBackend;
  /** With its doubts settled. */
  readonly store: RestrainedStore;
  /** `safe`, `repeat`, or the reason of the refusal or the error. */
  sign(message: SlashableMessage): Promise<string>;
}

export let slot: number;
let witnessed: number;
export let primary: PostgresServer;
export let proxy: PostgresProxy;
export let database: string;
export let log: ReturnType<typeof recordingLog>;
export let released: SlashableMessage[];
export let counted: string[];
export const opened: { close(): Promise<void> }[] = [];
export const clock = { now: () => slot * 12_000, monotonic: () => performance.now() };

beforeAll(async () => {
  primary = await startPostgres({ settings: { wal_level: 'replica', synchronous_standby_names: '' } });
});

afterAll(() => primary.close());

beforeEach(async () => {
  moveToSlot(1000);
  released = [];
  counted = [];
  log = recordingLog();
  // A test may have ended while it was stopped.
  await primary.start();
  database = await primary.createDatabase();
  proxy = await startPostgresProxy(primary.port);
  opened.push(proxy);
});

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
});

/** The time of all signers, and what a witness says of it. */
export function moveToSlot(next: number): void {
  slot = next;
  witnessed = next;
}

/** The clock of all signers is wrong, and the witness says so. */
export function misplaceClock(next: number): void {
  slot = next;
}

export async function signer(): Promise<Signer> {
  const url = primary.url(database).replace(`:${primary.port}/`, `:${proxy.port}/`);
  const backend = await openTestBackend(url, {
    log,
    clock,
    poolSize: 4,
  });
  const witness = { name: 'the witness', ask: async () => ({ time: witnessed * 12_000, confirms: true }) };
  const present = confirmedPresent(CHAIN, { now: clock.now, witnesses: [witness], needsNoWitness: false });
  const onJump = (cause: string) => void counted.push(cause);
  const doubts = openDoubts({ store: backend, present, onJump, log });
  const store = restrainStore(backend, { doubts });
  const protection = new SlashingProtection(store, {}, { clock, log });
  opened.push(protection);
  return {
    backend,
    store,
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
export async function untilDecided(one: Signer, message: SlashableMessage): Promise<string> {
  const end = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const answer = await one.sign(message);
    const isDecided = !['slashing_unavailable', 'clock_unconfirmed'].includes(answer);
    if (isDecided || performance.now() > end) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export const jumps = () => log.lines.filter(({ message }) => message.includes(JUMPED));

/** Lines that say why nothing may be signed. */
export const reasons = () => log.lines.map(({ message, fields }) => `${message} ${String(fields['err'])}`).join('\n');

/** Blocks and votes of keys 1 and 2 that reach the standby, then some of key 1 that do not. */
export async function signAndLose(one: Signer, other: Signer, keepBefore: () => Promise<void>): Promise<void> {
  for (const key of [1, 2]) {
    expect(await one.sign(block(key, 990, 'early'))).toBe('safe');
    expect(await other.sign(vote(key, 29, 30, 'early'))).toBe('safe');
  }
  await keepBefore();
  expect(await untilDecided(one, block(1, 1000, 'lost'))).toBe('safe');
  expect(await untilDecided(one, vote(1, 30, 31, 'lost'))).toBe('safe');
}

/** To a standby that is promoted without the messages that were lost. */
export async function failOver(one: Signer, other: Signer): Promise<PostgresStandby> {
  const standby = await primary.startStandby();
  opened.push(standby);
  await signAndLose(one, other, async () => {
    await standby.catchUp();
    await standby.stopReceiving();
  });
  await standby.promote();
  proxy.switchTo(standby.port, 'cut');
  return standby;
}

/** What the lost messages make slashable, asked of a signer that does not know of them. */
export async function askForRivals(other: Signer): Promise<void> {
  const rivals = [block(1, 1000, 'rival'), vote(1, 30, 31, 'rival'), vote(1, 29, 32, 'rival')];
  const answers: string[] = [];
  for (const rival of rivals) answers.push(await untilDecided(other, rival));
  expect(slashablePairs(released)).toEqual([]);
  expect(answers).not.toContain('safe');
}

/** Two epochs later both sign again, without anybody's help. */
export async function expectGoingOn(signers: readonly Signer[]): Promise<void> {
  moveToSlot(slot + 64);
  const epoch = Math.floor(slot / 32);
  for (const [index, one] of signers.entries()) {
    for (const key of [1, 2]) {
      expect(await untilDecided(one, block(key, slot + index, 'after'))).toBe('safe');
      expect(await untilDecided(one, vote(key, epoch - 1, epoch + index, 'after'))).toBe('safe');
    }
  }
  expect(slashablePairs(released)).toEqual([]);
}
