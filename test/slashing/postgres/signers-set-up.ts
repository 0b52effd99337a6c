// Signers on one PostgreSQL of the file, each test with a database of its own, and what they found safe held against
// the records.

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { unrestrained } from '../../support/restrained.ts';
import { quietLog } from '../../support/slashing.ts';
import { areSlashable } from '../../support/slashing-model.ts';
import { openTestBackend, type TestBackendOptions } from '../../support/slashing-postgres.ts';

export const SIGNERS = 4;

export let server: PostgresServer;
export let database: string;
export const opened: { close(): Promise<void> }[] = [];

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

export async function open(options: TestBackendOptions = {}, url = server.url(database)): Promise<SlashingBackend> {
  const backend = await openTestBackend(url, options);
  opened.push(backend);
  return backend;
}

export async function openSigners(options: TestBackendOptions = {}): Promise<SlashingProtection[]> {
  return Promise.all(
    Array.from({ length: SIGNERS }, async () => {
      return new SlashingProtection(unrestrained(await open(options)), {}, { clock: systemClock, log: quietLog });
    }),
  );
}

export async function safeOnes(messages: readonly SlashableMessage[], signers: readonly SlashingProtection[]) {
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

export function expectNoneSlashable(safe: readonly SlashableMessage[]): void {
  const byKey = Map.groupBy(safe, ({ publicKey }) => publicKey);
  for (const messages of byKey.values()) {
    for (const [index, message] of messages.entries()) {
      const clash = messages.slice(index + 1).find((later) => areSlashable(message, later));
      expect([message, clash]).toEqual([message, undefined]);
    }
  }
}

/** The rows themselves: an export leaves out what pruning would forget. */
export async function expectRecorded(safe: readonly SlashableMessage[]): Promise<void> {
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
export async function untilSafe(
  signer: SlashingProtection,
  message: (attempt: number) => SlashableMessage,
): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await signer.check(message(attempt)).catch(() => undefined);
    if (outcome !== undefined) return outcome.kind;
    await pause(5);
  }
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}

export function at<Element>(list: readonly Element[], index: number): Element {
  const element = list[index];
  if (element === undefined) throw new Error('no such element');
  return element;
}
