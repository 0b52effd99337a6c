// One key with very many entries: it is imported, judged and exported in steps, and holds up no other key.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { rowIntegrity } from '../../../signer/slashing/history/codes.ts';
import { RETAINED_SLOTS } from '../../../signer/slashing/history/prune.ts';
import { KEPT_ENTRIES } from '../../../signer/slashing/interchange/reduce.ts';
import { openPostgresBackend } from '../../../signer/slashing/postgres/backend.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import {
  block,
  checkOne,
  collect,
  MAIN_ROOT,
  publicKeyOf,
  quietLog,
  rootOf,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { addressOf, INTEGRITY_KEY, openTestBackend } from '../../support/slashing-postgres.ts';

const ENTRIES = 900_000;
const SMALL = 1_500;

let server: PostgresServer;
let backend: SlashingBackend;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

beforeEach(async () => {
  const opened = await openTestBackend(server.url(await server.createDatabase()));
  backend = opened;
  return () => opened.close();
});

const { query } = Client.prototype;

const blocksUpTo = (count: number) =>
  Array.from({ length: count }, (_, slot) => ({ slot, signingRoot: slot % 2 === 0 ? null : rootOf('b') }));
const votesUpTo = (count: number) =>
  Array.from({ length: count }, (_, epoch) => ({
    sourceEpoch: epoch,
    targetEpoch: epoch + 1,
    signingRoot: rootOf('v'),
  }));

it('an import of 900,000 entries of one key lets other keys sign, and keeps the last of them', async () => {
  const long = { publicKey: publicKeyOf(1), blocks: blocksUpTo(ENTRIES), attestations: votesUpTo(ENTRIES) };
  const progress = { isOver: false };
  const imported = backend.importHistories(stream([long])).finally(() => {
    progress.isOver = true;
  });
  let signed = 0;
  for (; !progress.isOver; signed += 1) {
    expect(verdictName(await checkOne(backend, block(2, signed, 'b')))).toBe('safe');
  }
  expect(await imported).toMatchObject({ validators: 1, blocks: ENTRIES, attestations: ENTRIES });
  // As often as the import gives way: it is staged and merged in many steps.
  expect(signed).toBeGreaterThan(20);
  const { blocks, attestations } = await backend.status();
  expect(blocks - signed).toBeLessThanOrEqual(KEPT_ENTRIES);
  expect(attestations).toBeLessThanOrEqual(KEPT_ENTRIES);
  for (const slot of [0, 1, ENTRIES - RETAINED_SLOTS, ENTRIES - 1]) {
    expect((await checkOne(backend, block(1, slot, 'rival'))).kind).toBe('refused');
  }
  for (const epoch of [0, ENTRIES - 600, ENTRIES - 1]) {
    expect((await checkOne(backend, vote(1, epoch, epoch + 1, 'rival'))).kind).toBe('refused');
  }
  expect(verdictName(await checkOne(backend, block(1, ENTRIES, 'next')))).toBe('safe');
  expect(verdictName(await checkOne(backend, vote(1, ENTRIES - 1, ENTRIES + 1, 'next')))).toBe('safe');
});

it('keys with many entries are merged one by one: no turn of the event loop computes and sends much', async () => {
  const genesisValidatorsRoot = Buffer.from(MAIN_ROOT.slice(2), 'hex');
  const own = rowIntegrity({ key: INTEGRITY_KEY, genesisValidatorsRoot });
  let [done, longest] = [0, 0];
  const hash: typeof own.hash = (...given) => {
    done += 1;
    return own.hash(...given);
  };
  const counting = await openPostgresBackend(
    {
      address: addressOf(server.url(await server.createDatabase())),
      poolSize: 4,
      forceIpv4: false,
      genesisValidatorsRoot,
      integrity: { ...own, hash },
    },
    { log: quietLog, clock: systemClock },
  );
  const long = [1, 2, 3, 4, 5, 6].map((key) => ({
    publicKey: publicKeyOf(key),
    blocks: blocksUpTo(KEPT_ENTRIES),
    attestations: votesUpTo(KEPT_ENTRIES),
  }));
  // What is sent is written as text, row by row, in the turn of its statement.
  const sent = vi.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...given: unknown[]) {
    const [{ values = [] }] = given as [{ values?: readonly unknown[] }];
    done += values.reduce((most: number, value) => Math.max(most, Array.isArray(value) ? value.length : 0), 0);
    return query.apply(this, given as never);
  } as never);
  const progress = { isOver: false };
  const imported = counting.importHistories(stream(long)).finally(() => {
    progress.isOver = true;
  });
  while (!progress.isOver) {
    done = 0;
    await nextTurn();
    longest = Math.max(longest, done);
  }
  expect(await imported).toMatchObject({ validators: long.length });
  sent.mockRestore();
  await counting.close();
  expect(longest).toBeGreaterThan(KEPT_ENTRIES / 2);
  expect(longest).toBeLessThanOrEqual(2 * KEPT_ENTRIES + 10);
});

it('a history of several pages is read whole: nothing of it is missing in an export or a verdict', async () => {
  const first = 100_000;
  // Signed here, so that nothing is folded; one batch may name a key once.
  await backend.importHistories(
    stream([{ publicKey: publicKeyOf(1), blocks: [{ slot: first, signingRoot: null }], attestations: [] }]),
  );
  for (let at = 1; at <= SMALL; at += 1) await checkOne(backend, block(1, first + 2 * at, 'a'));
  const [history] = await collect(backend.exportHistories([publicKeyOf(1)]));
  expect(history?.blocks).toHaveLength(SMALL + 1);
  expect(verdictName(await checkOne(backend, block(1, first + 2 * SMALL - 1, 'between')))).toBe('safe');
  expect(verdictName(await checkOne(backend, block(1, first + 2 * SMALL - 1, 'rival')))).toBe('double_block');
  for (const at of [1, SMALL])
    expect(verdictName(await checkOne(backend, block(1, first + 2 * at, 'a')))).toBe('repeat');
  await backend.importHistories(backend.exportHistories());
  expect(verdictName(await checkOne(backend, block(1, first + 2 * SMALL, 'a')))).toBe('repeat');
  // What a reader leaves out of a long file may be anything: what is recorded up to it is no repeat any more.
  expect(verdictName(await checkOne(backend, block(1, first + 2, 'a')))).toBe('double_block');
});
