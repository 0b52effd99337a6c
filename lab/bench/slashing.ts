// What grouping the commits of slashing protection is worth on this machine: checks a second at a given concurrency,
// grouped and with one transaction a check, on the same SQLite file system, interleaved. Ratios mean something,
// absolute figures only beside them. Run it with bin/pinned-node; set TMPDIR to the disk of interest.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../common/observe/clock.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { unrestrained } from '../../test/support/restrained.ts';
import { MAIN_ROOT, quietLog, vote } from '../../test/support/slashing.ts';

const SECONDS = 2;
const ROUNDS = 3;
const KEYS = 5000;

interface Result {
  readonly checksPerSecond: number;
  readonly commitsPerCheck: number;
  readonly p50: number;
  readonly p99: number;
}

async function measure(concurrency: number, grouped: boolean): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'slashing-bench-'));
  const options = {
    path: join(folder, 'bench.sqlite'),
    genesisValidatorsRoot: MAIN_ROOT,
    integrityKey: Buffer.alloc(32, 1),
  };
  const sqlite = await openSqliteBackend(options, { log: quietLog });
  const backend: SlashingBackend = grouped ? sqlite : single(sqlite);
  let [commits, checks, next] = [0, 0, 0];
  const latencies: number[] = [];
  const protection = new SlashingProtection(
    unrestrained(backend),
    {
      onBatch: () => {
        commits += 1;
      },
    },
    { clock: systemClock, log: quietLog },
  );

  const end = performance.now() + SECONDS * 1000;
  const client = async () => {
    while (performance.now() < end) {
      const epoch = Math.floor(next / KEYS);
      const message = vote(next % KEYS, epoch, epoch + 1, epoch);
      next += 1;
      const started = performance.now();
      const outcome = await protection.check(message);
      if (outcome.kind !== 'safe') throw new Error(`${outcome.reason} in the bench`);
      latencies.push(performance.now() - started);
      checks += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  await protection.close();
  rmSync(folder, { recursive: true });
  latencies.sort((one, other) => one - other);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return { checksPerSecond: checks / SECONDS, commitsPerCheck: commits / checks, p50: at(0.5), p99: at(0.99) };
}

/** The same backend with one transaction a check. */
function single(sqlite: SlashingBackend): SlashingBackend {
  return {
    ...sqlite,
    batchLimits: { maxMessages: 1, maxInFlight: 64, minIntervalMs: 0 },
  };
}

function median(results: readonly Result[], field: keyof Result): number {
  return results.map((result) => result[field]).sort((one, other) => one - other)[results.length >> 1] ?? Number.NaN;
}

for (const concurrency of [1, 64, 512]) {
  const [grouped, alone]: [Result[], Result[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    grouped.push(await measure(concurrency, true));
    alone.push(await measure(concurrency, false));
  }
  const describe = (name: string, results: Result[]) =>
    `  ${name.padEnd(24)} ${median(results, 'checksPerSecond').toFixed(0).padStart(7)} checks/s, ` +
    `${median(results, 'commitsPerCheck').toFixed(3)} fsyncs/check, ` +
    `p50 ${median(results, 'p50').toFixed(2)} ms, p99 ${median(results, 'p99').toFixed(2)} ms`;
  console.log(`concurrency ${concurrency}`);
  console.log(describe('grouped', grouped));
  console.log(describe('one transaction a check', alone));
  console.log(`  ratio ${(median(grouped, 'checksPerSecond') / median(alone, 'checksPerSecond')).toFixed(1)}`);
}
