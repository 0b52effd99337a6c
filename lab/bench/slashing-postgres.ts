// What grouping is worth on PostgreSQL: checks a second, grouped by SlashingProtection and one transaction a signing,
// measured in turns in one run on a real server with fsync on. The machine may be shared, so the ratio is what counts:
// specification/limits.md#performance asks for 5 at 64 concurrent signings.
// Run: bin/pinned-node lab/bench/slashing-postgres.ts [rounds]

import { systemClock } from '../../common/observe/clock.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import type { Vote } from '../../signer/slashing/types.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { unrestrained } from '../../test/support/restrained.ts';
import { history, quietLog, stream, vote } from '../../test/support/slashing.ts';
import { openTestBackend } from '../../test/support/slashing-postgres.ts';

const KEYS = 5_000;
/** Votes that each key has at first. */
const HISTORY = 20;
const CONCURRENCIES = [1, 64, 512];
const ROUND_SECONDS = 3;
const ROUNDS = Number(process.argv[2] ?? 3);

interface Measurement {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const server = await startPostgres({ settings: { max_connections: '600', shared_buffers: '256MB' } });
try {
  const backend = await openTestBackend(server.url(await server.createDatabase()), { poolSize: 64 });
  const sizes: number[] = [];
  const onBatch = (size: number) => void sizes.push(size);
  const protection = new SlashingProtection(unrestrained(backend), { onBatch }, { clock: systemClock, log: quietLog });
  const start = performance.now();
  await backend.importHistories(stream(Array.from({ length: KEYS }, (_, key) => history(key, [], votesOf(key)))));
  console.log(`imported ${KEYS} keys of ${HISTORY} votes in ${((performance.now() - start) / 1000).toFixed(1)} s`);

  const grouped = async (message: Vote) => (await protection.check(message)).kind;
  const single = async (message: Vote) => (await backend.checkAndRecord([message], [NO_MARKS]))[0]?.kind;
  const next = voteSource();
  for (const concurrency of CONCURRENCIES) {
    const [groupedRuns, singleRuns]: [Measurement[], Measurement[]] = [[], []];
    sizes.length = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      groupedRuns.push(await measure(concurrency, next, grouped));
      singleRuns.push(await measure(concurrency, next, single));
    }
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
    const [together, alone] = [median(groupedRuns), median(singleRuns)];
    console.log(`${concurrency} concurrent, batches of ${mean.toFixed(1)}`);
    console.log(`  grouped                  ${text(together)}`);
    console.log(`  one transaction each     ${text(alone)}`);
    console.log(`  ratio                    ${(together.perSecond / alone.perSecond).toFixed(2)}`);
  }
  await protection.close();
} finally {
  await server.close();
}

function votesOf(key: number): [number, number, string][] {
  return Array.from({ length: HISTORY }, (_, epoch) => [epoch, epoch + 1, `${key} ${epoch}`]);
}

/** The next vote of the next key, in turn. */
function voteSource(): () => Vote {
  let count = 0;
  return () => {
    const epoch = HISTORY + Math.floor(count / KEYS);
    count += 1;
    return vote(count % KEYS, epoch, epoch + 1, epoch);
  };
}

async function measure(
  concurrency: number,
  next: () => Vote,
  check: (message: Vote) => Promise<string | undefined>,
): Promise<Measurement> {
  const latencies: number[] = [];
  const start = performance.now();
  const end = start + ROUND_SECONDS * 1000;
  const workers = Array.from({ length: concurrency }, async () => {
    while (performance.now() < end) {
      const began = performance.now();
      if ((await check(next())) !== 'safe') throw new Error('a vote of the bench was refused');
      latencies.push(performance.now() - began);
    }
  });
  await Promise.all(workers);
  const seconds = (performance.now() - start) / 1000;
  latencies.sort((one, other) => one - other);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return { perSecond: latencies.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

function median(runs: readonly Measurement[]): Measurement {
  const sorted = runs.toSorted((one, other) => one.perSecond - other.perSecond);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('no runs');
  return middle;
}

function text({ perSecond, p50Ms, p99Ms }: Measurement): string {
  return `${perSecond.toFixed(0).padStart(6)}/s  p50 ${p50Ms.toFixed(1)} ms  p99 ${p99Ms.toFixed(1)} ms`;
}
