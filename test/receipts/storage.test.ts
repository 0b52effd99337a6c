// What both storages of receipts owe to the log: files whole and back again, boots by their latest heads, and proofs of
// inclusion from what they hold, against a real DynamoDB stand-in and a real folder.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signedHead } from '../../common/receipts/head.ts';
import { CHECKPOINT, headPath, IDENTITY, tilePath } from '../../common/receipts/tiles.ts';
import { leafHash } from '../../common/receipts/tree.ts';
import { WHOLE_LOGS } from '../../common/receipts/verify.ts';
import {
  type DynamoDBServer,
  dynamoDBClientOptions,
  startDynamoDB,
  WAITS_FOR_ANSWERS,
} from '../../rehearsal/dynamodb.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { inParallel } from '../../signer/parallel.ts';
import { openReceiptLog, type ReceiptLog } from '../../signer/receipts/log.ts';
import { removeOldEntries } from '../../signer/receipts/retention.ts';
import { receiptsInStateTable } from '../../signer/receipts/state-table.ts';
import type { ReceiptStorage } from '../../signer/receipts/storage.ts';
import { recordingLog } from '../support/recording-log.ts';
import { faultsOf, headOf, keptBoots } from './kept.ts';
import { makeLog, testBoot, testEntry } from './logs.ts';
import { proveInclusion, provesInclusion } from './proofs.ts';

const SIZES = [1, 255, 256, 257, 700];

let folder: string;
let dynamodb: DynamoDBServer;
let client: DynamoDBClient;
let tables = 0;
let nowMs = Date.parse('2026-11-25T12:00:00Z');

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-storage-'));
  dynamodb = await startDynamoDB();
  client = createDynamoDBClient(dynamoDBClientOptions(dynamodb.endpoint, WAITS_FOR_ANSWERS));
});
afterAll(async () => {
  client.destroy();
  await dynamodb.close();
  rmSync(folder, { recursive: true });
});

const STORAGES: Readonly<Record<string, () => Promise<ReceiptStorage>>> = {
  folder: async () => receiptsFolder(join(folder, `${++tables}`)),
  'state table': async () => {
    const name = `receipts-${++tables}`;
    await dynamodb.createTable(tableDefinition(name));
    return receiptsInStateTable(client, name);
  },
};

async function start(storage: ReceiptStorage, retentionDays: number | null = null): Promise<ReceiptLog> {
  nowMs += 1000;
  return await openReceiptLog(
    { intervalSeconds: 60, maxWaitingEntries: 100_000, required: false, retentionDays },
    {
      genesisValidatorsRoot: `0x${'d8'.repeat(32)}`,
      attest: undefined,
      storage,
      facts: () => ({ slashing: null, latch: null, auth_revision: null }),
      clock: { now: () => nowMs, monotonic: () => nowMs },
      log: recordingLog(),
    },
  );
}

async function decide(log: ReceiptLog, upTo: number): Promise<void> {
  while (log.size < upTo) log.record(testEntry(1, log.size));
  nowMs += 60_000;
  await log.keepHead();
}

describe.each(Object.entries(STORAGES))('%s', (_name, open) => {
  it('gives back what was written, and nothing that was not', async () => {
    const storage = await open();
    const boot = 'ab'.repeat(16);
    const files = [1, 2, 3].map((byte) => ({ path: headPath(byte), content: Buffer.alloc(80_000, byte) }));
    await storage.write(boot, files);
    await storage.write(boot, [{ path: headPath(2), content: Buffer.from('again') }]);
    expect(await storage.read(boot, headPath(1))).toEqual(Buffer.alloc(80_000, 1));
    expect((await storage.read(boot, headPath(2)))?.toString()).toBe('again');
    expect(await storage.read(boot, headPath(4))).toBeUndefined();
    expect(await storage.read('cd'.repeat(16), headPath(1))).toBeUndefined();
    await storage.remove(boot, [headPath(1), headPath(4)]);
    expect(await storage.read(boot, headPath(1))).toBeUndefined();
    // A start that ended before its first head signed nothing that a log would show.
    expect(await storage.boots()).toEqual([]);
  });

  it('lists boots by their latest heads, and a start names the heads of them', async () => {
    const storage = await open();
    const first = await start(storage);
    const second = await start(storage);
    expect(await storage.boots()).toEqual([second.boot, first.boot]);
    await decide(first, 3);
    expect(await storage.boots()).toEqual([first.boot, second.boot]);
    await second.close();
    await first.close();
    const third = await start(storage);
    const named = headOf(third.latestHead).statement.before?.heads;
    const latest = [first, second].map(({ latestHead }) => headOf(latestHead).digest);
    expect(named).toEqual(latest.toSorted());
    await third.close();
    expect(await faultsOf(storage)).toEqual(['unattested']);
  });

  it('a start names the head behind a checkpoint that a kill kept from being written', async () => {
    const storage = await open();
    const first = await start(storage);
    const checkpoint = await storage.read(first.boot, CHECKPOINT);
    await decide(first, 3);
    await storage.write(first.boot, [{ path: CHECKPOINT, content: checkpoint ?? Buffer.alloc(0) }]);
    const second = await start(storage);
    expect(headOf(second.latestHead).statement.before?.heads).toEqual([headOf(first.latestHead).digest]);
  });

  it('holds a whole log at any size, and proves each of its entries', async () => {
    const storage = await open();
    const log = await start(storage);
    for (const size of SIZES) {
      await decide(log, size);
      expect(headOf(log.latestHead).size).toBe(size);
      for (const index of new Set([0, size >> 1, size - 1])) {
        const found = await proveInclusion(storage, log.boot, index);
        if (found === undefined) throw new Error('there is no proof');
        expect(provesInclusion(leafHash(found.entry), index, headOf(found.head), found.proof)).toBe(true);
      }
      expect(await proveInclusion(storage, log.boot, size)).toBeUndefined();
    }
    await log.close();
    expect(await faultsOf(storage)).toEqual(['unattested']);
    const [kept] = await keptBoots(storage);
    expect([...(kept?.entries ?? [])].length).toBe(700);
    expect(await storage.read(log.boot, IDENTITY)).toBeDefined();
    // What a full tile says better is gone.
    expect(await storage.read(log.boot, tilePath('entries', 0, 255))).toBeUndefined();
    expect(await storage.read(log.boot, tilePath(0, 0, 1))).toBeUndefined();
  });
});

describe.each(Object.entries(STORAGES))('retention in the %s', (_name, open) => {
  const DAY_MS = 86_400_000;
  const entriesOf = (storage: ReceiptStorage, boot: string, tile: number) =>
    storage.read(boot, tilePath('entries', tile, 256));

  it('takes the full tiles of old entries, leaves their hashes, and every head is verified as before', async () => {
    const storage = await open();
    const log = await start(storage, 1);
    await decide(log, 700);
    await decide(log, 1000);
    nowMs += DAY_MS - 60_000;
    await log.keepHead();
    // Of the head with 700 entries, which is as old as that, two tiles are full.
    await removeOldEntries(storage, log.latestHead, recordingLog());
    expect(await entriesOf(storage, log.boot, 0)).toBeUndefined();
    expect(await entriesOf(storage, log.boot, 1)).toBeUndefined();
    expect(await entriesOf(storage, log.boot, 2)).toBeDefined();
    await log.close();
    expect(await faultsOf(storage)).toEqual(['removed_by_retention', 'unattested']);
    expect(await proveInclusion(storage, log.boot, 511)).toBeUndefined();
    const found = await proveInclusion(storage, log.boot, 512);
    if (found === undefined) throw new Error('there is no proof');
    expect(provesInclusion(leafHash(found.entry), 512, headOf(found.head), found.proof)).toBe(true);
  });

  it('is done again where a call ended in its midst, and takes what was put back into its place', async () => {
    const storage = await open();
    const log = await start(storage, 1);
    await decide(log, 600);
    const bundle = (await entriesOf(storage, log.boot, 1)) ?? Buffer.alloc(0);
    nowMs += 2 * DAY_MS;
    await log.keepHead();
    await removeOldEntries(storage, log.latestHead, recordingLog());
    await storage.write(log.boot, [{ path: tilePath('entries', 1, 256), content: bundle }]);
    await removeOldEntries(storage, log.latestHead, recordingLog());
    expect(await entriesOf(storage, log.boot, 1)).toBeUndefined();
    await log.close();
    expect(await faultsOf(storage)).toEqual(['removed_by_retention', 'unattested']);
  });

  it('takes nothing before a head that says so is kept, and nothing without the option', async () => {
    const storage = await open();
    const log = await start(storage, null);
    await decide(log, 600);
    nowMs += 2 * DAY_MS;
    await log.keepHead();
    for (const head of [log.latestHead, undefined]) await removeOldEntries(storage, head, recordingLog());
    await log.close();
    expect(await faultsOf(storage)).toEqual(['unattested']);
  });

  it('takes entries of earlier boots, which a verifier believes of an attested boot or by the word of the auditor', async () => {
    const storage = await open();
    const first = await start(storage);
    await decide(first, 600);
    await first.close();
    const endMs = nowMs;
    nowMs += 2 * DAY_MS;
    const second = await start(storage, 1);
    await removeOldEntries(storage, second.latestHead, recordingLog());
    await second.close();
    expect(await entriesOf(storage, first.boot, 0)).toBeUndefined();
    expect(await faultsOf(storage)).toEqual(['missing_entries', 'unattested']);
    const asked = { ...WHOLE_LOGS, removableMs: endMs };
    expect(await faultsOf(storage, undefined, asked)).toEqual(['removed_by_retention', 'unattested']);
  });

  it('leaves a boot whose entries were damaged, says so, and goes on with the others', async () => {
    const storage = await open();
    const logs = [await start(storage, 1), await start(storage, 1)];
    for (const log of logs) await decide(log, 300);
    const [damaged, other] = logs.map(({ boot }) => boot) as [string, string];
    await storage.write(damaged, [{ path: tilePath('entries', 0, 256), content: Buffer.from([9]) }]);
    nowMs += 2 * DAY_MS;
    for (const log of logs) await log.keepHead();
    const log = recordingLog();
    await removeOldEntries(storage, logs[0]?.latestHead, log);
    expect(await entriesOf(storage, damaged, 0)).toEqual(Buffer.from([9]));
    expect(await entriesOf(storage, other, 0)).toBeUndefined();
    expect(log.lines.map(({ fields }) => fields['boot'])).toEqual([damaged]);
    for (const one of logs) await one.close();
  });
});

describe('the lists of the state table', () => {
  const STARTS = 600;

  it(`have all of ${STARTS} starts, and an auditor who comes later finds all their logs whole`, async () => {
    const storage = await STORAGES['state table']?.();
    if (storage === undefined) throw new Error('there is no state table');
    const started: string[] = [];
    for (let index = 0; index < STARTS; index++) {
      const log = await start(storage);
      log.record(testEntry(1, index));
      nowMs += 60_000;
      await log.close();
      started.push(log.boot);
    }
    expect(await storage.boots()).toEqual(started.toReversed());
    expect(await faultsOf(storage)).toEqual(['unattested']);
  });

  it('keep each boot when two signers move the oldest at once, and list one once that came back', async () => {
    const storage = await STORAGES['state table']?.();
    if (storage === undefined) throw new Error('there is no state table');
    const { identity } = testBoot(1);
    const head = headOf(makeLog(testBoot(1), 1, { sizes: [], startSeconds: 0 }).heads[0]);
    const enlist = (index: number, time: number) => {
      const boot = index.toString(16).padStart(32, '0');
      const note = signedHead({ ...head, boot, statement: { ...head.statement, time } }, identity, Buffer.alloc(64));
      return storage.write(boot, [{ path: CHECKPOINT, content: Buffer.from(note) }]);
    };
    const all = Array.from({ length: 1600 }, (_, index) => index);
    await inParallel(all, 8, (index) => enlist(index, index + 1));
    await enlist(0, 5000);
    const names = all.map((index) => index.toString(16).padStart(32, '0'));
    expect(await storage.boots()).toEqual([names[0], ...names.slice(1).toReversed()]);
  });
});
