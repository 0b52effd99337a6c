// `bench/receipts.ts [--rounds N] [--keys N]`: throughput, CPU and p99 at half load of two signers of one run, one with
// a log of receipts in a folder, and one without. They take turns under the same load, so that what the machine does
// beside them meets both; each figure is the median of the rounds' ratios.

import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { testKey } from '../test/support/requests.ts';
import { median } from './bars.ts';
import type { LoadResult } from './load-generator.ts';
import { cpuSeconds, GROUP, type Load, LoadGenerator, startMeasured, Votes } from './measured-signer.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '9' }, groups: { type: 'string', default: '16' } },
});
const rounds = Number(values.rounds);
const keys = Array.from({ length: GROUP * Number(values.groups) }, (_, index) => testKey(index));
const folder = mkdtempSync(join(tmpdir(), 'strongroom-bench-receipts-'));
const receipts = { storage: 'folder', path: folder, interval_seconds: 10 };
const signers = {
  with: await startMeasured(keys, 'native', { receipts }),
  without: await startMeasured(keys, 'native'),
};
type Which = keyof typeof signers;
const votes = { with: new Votes(keys), without: new Votes(keys) };
const generator = await LoadGenerator.start();

interface Figure {
  readonly rate: number;
  readonly cpuMicroseconds: number;
  readonly p99: number;
}

/** A load is short, and CPU time is counted in hundredths of a second: a round is some loads, one after another. */
const LOADS_OF_A_ROUND = 4;

async function run(which: Which, loadOf: (which: Which) => Load): Promise<Figure> {
  const loads = Array.from({ length: LOADS_OF_A_ROUND }, () => loadOf(which));
  const before = cpuSeconds(signers[which]);
  const results: LoadResult[] = [];
  for (const load of loads) results.push(await generator.run(signers[which], load));
  const signatures = keys.length * LOADS_OF_A_ROUND;
  return {
    rate: signatures / results.reduce((sum, { seconds }) => sum + seconds, 0),
    cpuMicroseconds: ((cpuSeconds(signers[which]) - before) / signatures) * 1e6,
    p99: median(results.map(({ p99 }) => p99)),
  };
}

/** The order changes from round to round. */
async function compare(name: string, loadOf: (which: Which) => Load): Promise<number> {
  const figures: Record<Which, Figure[]> = { with: [], without: [] };
  for (let round = 0; round < rounds; round++) {
    const order: Which[] = round % 2 === 0 ? ['with', 'without'] : ['without', 'with'];
    for (const which of order) figures[which].push(await run(which, loadOf));
  }
  const ratio = (pick: (figure: Figure) => number): string => {
    const ratios = figures.with.map((figure, index) => pick(figure) / pick(figures.without[index] ?? figure));
    const sorted = ratios.toSorted((one, other) => one - other);
    const quarter = Math.floor(sorted.length / 4);
    const [low, high] = [sorted[quarter], sorted[sorted.length - 1 - quarter]];
    return `${median(ratios).toFixed(3)} (half of the rounds from ${low?.toFixed(3)} to ${high?.toFixed(3)})`;
  };
  const middle = (which: Which, pick: (figure: Figure) => number): number => median(figures[which].map(pick));
  console.log(`${name}, load average ${loadavg()[0]?.toFixed(1)}`);
  console.log(`  throughput with / without: ${ratio(({ rate }) => rate)}`);
  console.log(`  CPU with / without: ${ratio(({ cpuMicroseconds }) => cpuMicroseconds)}`);
  console.log(
    `  CPU of a signature without: ${middle('without', ({ cpuMicroseconds }) => cpuMicroseconds).toFixed(0)} µs`,
  );
  const [own, bare] = [middle('with', ({ p99 }) => p99), middle('without', ({ p99 }) => p99)];
  console.log(`  p99 with, without: ${own.toFixed(1)}, ${bare.toFixed(1)} ms`);
  return middle('without', ({ rate }) => rate);
}

for (let round = 0; round < 4; round++) {
  for (const which of ['with', 'without'] as const) {
    await generator.run(signers[which], { requests: votes[which].slotBursts() });
  }
}
await compare('slot burst', (which) => ({ requests: votes[which].slotBursts() }));
const rate = await compare('distinct roots', (which) => ({ requests: votes[which].distinct() }));
await compare('half load, distinct roots', (which) => ({ requests: votes[which].distinct(), ratePerSecond: rate / 2 }));
await compare('batches', (which) => ({ requests: votes[which].batches(), connections: 8 }));
generator.stop();
await Promise.all([signers.with.stop(), signers.without.stop()]);
rmSync(folder, { recursive: true });
