// What a check costs on DynamoDB (a local stand-in): concurrent checks through SlashingProtection, whose writes share
// requests, beside single writes one after another, and beside concurrent writes of a request each, measured in turns
// in one run. The machine may be shared, so the ratio is what counts: specification/limits.md#performance asks for 5 at
// 64 concurrent signings. A stand-in has no network; the second part puts one in front of it, DELAY_MS a call, where
// the ratio is what a real table would show. Run: bin/pinned-node lab/bench/slashing-dynamodb.ts [rounds]

import { type AddressInfo, connect, createServer } from 'node:net';
import { decodeHex } from '../../common/formats/hex.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { createDynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { checkAndRecordOne, verifiedItems } from '../../signer/slashing/dynamodb/operations/check.ts';
import { slashingTable } from '../../signer/slashing/dynamodb/tables/table.ts';
import { rowIntegrity } from '../../signer/slashing/history/codes.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import type { Vote } from '../../signer/slashing/types.ts';
import { unrestrained } from '../../test/support/restrained.ts';
import { history, MAIN_ROOT, quietLog, stream, vote } from '../../test/support/slashing.ts';
import { startSlashingTables } from '../../test/support/slashing-dynamodb.ts';

const KEYS = 5_000;
const CONCURRENCIES = [1, 64, 512];
const ROUND_SECONDS = 3;
const ROUNDS = Number(process.argv[2] ?? 3);
/** About what a write in the same region takes. */
const DELAY_MS = 5;
const PATIENT = { connectTimeoutMs: 20_000, requestTimeoutMs: 20_000 };

interface Measurement {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const tables = await startSlashingTables();
const distant = await startDelay(new URL(tables.server.endpoint));
try {
  await compare('the stand-in itself', tables.server.endpoint);
  await compare(`behind a delay of ${DELAY_MS} ms, made in this process`, distant.endpoint);
} finally {
  distant.close();
  await tables.close();
}

/** Passes bytes on, those of requests DELAY_MS late. */
async function startDelay({ hostname, port }: URL) {
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    near.on('data', (bytes) => setTimeout(() => far.write(bytes), DELAY_MS));
    far.pipe(near);
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
  };
}

type Check = (message: Vote) => Promise<string | undefined>;

async function compare(name: string, endpoint: string): Promise<void> {
  const backend = await tables.open(await importedTable(), { endpoint, client: PATIENT });
  const protection = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
  const apart = separateWrites(endpoint, await importedTable());
  console.log(name);

  const [next, nextApart] = [voteSource(), voteSource()];
  const checked: Check = async (message) => (await protection.check(message)).kind;
  const single: Check = async (message) => (await backend.checkAndRecord([message], [NO_MARKS]))[0]?.kind;
  // Every key once, so that the process knows its items as it does after its first epoch.
  await measure(64, next, checked, KEYS);
  await measure(64, nextApart, apart.check, KEYS);
  for (const concurrency of CONCURRENCIES) {
    const [together, alone, each]: [Measurement[], Measurement[], Measurement[]] = [[], [], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      together.push(await measure(concurrency, next, checked));
      alone.push(await measure(1, next, single));
      each.push(await measure(concurrency, nextApart, apart.check));
    }
    const { perSecond } = median(together);
    const ratio = (others: Measurement[]) => `ratio ${(perSecond / median(others).perSecond).toFixed(2)}`;
    console.log(`  ${String(concurrency).padStart(3)} concurrent            ${text(median(together))}`);
    console.log(`  one write after another   ${text(median(alone))}   ${ratio(alone)}`);
    console.log(`  ${String(concurrency).padStart(3)}, a request each       ${text(median(each))}   ${ratio(each)}`);
  }
  apart.close();
  await protection.close();
}

async function importedTable(): Promise<string> {
  const tableName = await tables.create();
  const loader = await tables.open(tableName);
  await loader.importHistories(stream(Array.from({ length: KEYS }, (_, key) => history(key, [], [[0, 0, null]]))));
  await loader.close();
  return tableName;
}

/** The same check, every write a request of its own. */
function separateWrites(endpoint: string, tableName: string): { readonly check: Check; close(): void } {
  const client = createDynamoDBClient({ ...dynamoDBClientOptions(endpoint, PATIENT), maxSockets: 264 });
  const genesisValidatorsRoot = decodeHex(MAIN_ROOT, 32) ?? Buffer.alloc(32);
  const integrity = rowIntegrity({ key: Buffer.alloc(32, 7), genesisValidatorsRoot });
  const table = slashingTable(client, tableName, integrity);
  // Every key was imported, so none has a first record to write.
  const never = () => Promise.reject(new Error('a key of the bench has no item'));
  const store = { floor: null, read: never };
  const context = { table, integrity, verified: verifiedItems(), store, writeFirst: never };
  return {
    check: async (message) => (await checkAndRecordOne(message, NO_MARKS, context)).kind,
    close: () => client.destroy(),
  };
}

/** The next vote of the next key, in turn. */
function voteSource(): () => Vote {
  let count = 0;
  return () => {
    const epoch = 1 + Math.floor(count / KEYS);
    count += 1;
    return vote(count % KEYS, epoch, epoch + 1, epoch);
  };
}

async function measure(
  concurrency: number,
  next: () => Vote,
  check: Check,
  count = Number.POSITIVE_INFINITY,
): Promise<Measurement> {
  const latencies: number[] = [];
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const end = count === Number.POSITIVE_INFINITY ? start + ROUND_SECONDS * 1000 : Number.POSITIVE_INFINITY;
  let left = count;
  const workers = Array.from({ length: concurrency }, async () => {
    while (performance.now() < end && left > 0) {
      left -= 1;
      const began = performance.now();
      if ((await check(next())) !== 'safe') throw new Error('a vote of the bench was refused');
      latencies.push(performance.now() - began);
    }
  });
  await Promise.all(workers);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  latencies.sort((one, other) => one - other);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return {
    perSecond: latencies.length / seconds,
    cpuMs: (user + system) / 1000 / latencies.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
}

function median(runs: readonly Measurement[]): Measurement {
  const middle = runs.toSorted((one, other) => one.perSecond - other.perSecond)[runs.length >> 1];
  if (middle === undefined) throw new Error('no runs');
  return middle;
}

function text({ perSecond, cpuMs, p50Ms, p99Ms }: Measurement): string {
  const rate = `${perSecond.toFixed(0).padStart(6)}/s  CPU ${cpuMs.toFixed(2)} ms`;
  return `${rate}  p50 ${p50Ms.toFixed(1).padStart(5)} ms  p99 ${p99Ms.toFixed(1).padStart(5)} ms`;
}
