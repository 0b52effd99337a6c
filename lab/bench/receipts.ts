// `lab/bench/receipts.ts [--starts N] [--rounds N] [--groups N] [--load burst|distinct|batches]`: throughput, CPU and
// p99 of two signers of one run, one with a log of receipts in a folder, and one without. They take turns under the
// same load, so that what the machine does beside them meets both. Two processes of one program differ by a percent for
// as long as they live, so the bench starts a few pairs. It prints the median of the ratios of all rounds.

import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { testKey } from '../../test/support/requests.ts';
import { median } from './bars.ts';
import type { LoadResult } from './load-generator.ts';
import { cpuSeconds, GROUP, type Load, LoadGenerator, startMeasured, Votes } from './measured-signer.ts';

const { values } = parseArgs({
  options: {
    starts: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    groups: { type: 'string', default: '16' },
    load: { type: 'string' },
  },
});
/** A load is short, and CPU time is counted in hundredths of a second: a round is some loads, one after another. */
const LOADS_OF_A_ROUND = 4;
/** Of each kind: a signer lives for weeks, and what the engine compiles in its first seconds is not the question. */
const WARM_UP_LOADS = 12;
const keys = Array.from({ length: GROUP * Number(values.groups) }, (_, index) => testKey(index));
const generator = await LoadGenerator.start();

interface Measured {
  readonly signer: RunningSigner;
  readonly votes: Votes;
}

type Which = 'with' | 'without';
type Pair = Readonly<Record<Which, Measured>>;

interface Figure {
  readonly rate: number;
  readonly cpuMicroseconds: number;
  readonly p99: number;
}

type Figures = Readonly<Record<Which, Figure[]>>;

const LOADS: Readonly<Record<string, (votes: Votes) => Load>> = {
  burst: (votes) => ({ requests: votes.slotBursts() }),
  distinct: (votes) => ({ requests: votes.distinct() }),
  'half load, distinct': (votes) => ({ requests: votes.distinct(), ratePerSecond: halfRate() }),
  batches: (votes) => ({ requests: votes.batches(), connections: 8 }),
};
const asked = Object.keys(LOADS).filter((name) => values.load === undefined || name.endsWith(values.load));
if (asked.length === 0) throw new Error(`--load ${values.load}: say burst, distinct or batches`);
const figures = new Map<string, Figures>(asked.map((name) => [name, { with: [], without: [] }]));

function halfRate(): number {
  return median((figures.get('distinct')?.without ?? []).map(({ rate }) => rate)) / 2;
}

async function run({ signer, votes }: Measured, loadOf: (votes: Votes) => Load): Promise<Figure> {
  const loads = Array.from({ length: LOADS_OF_A_ROUND }, () => loadOf(votes));
  const before = cpuSeconds(signer);
  const results: LoadResult[] = [];
  for (const load of loads) results.push(await generator.run(signer, load));
  const signatures = keys.length * LOADS_OF_A_ROUND;
  return {
    rate: signatures / results.reduce((sum, { seconds }) => sum + seconds, 0),
    cpuMicroseconds: ((cpuSeconds(signer) - before) / signatures) * 1e6,
    p99: median(results.map(({ p99 }) => p99)),
  };
}

/** The order changes from round to round. */
async function compare(
  pair: Pair,
  loadOf: (votes: Votes) => Load,
  { with: own, without: bare }: Figures,
): Promise<void> {
  for (let round = 0; round < Number(values.rounds); round++) {
    const isOwnFirst = own.length % 2 === 0;
    if (isOwnFirst) own.push(await run(pair.with, loadOf));
    bare.push(await run(pair.without, loadOf));
    if (!isOwnFirst) own.push(await run(pair.with, loadOf));
  }
}

function print(name: string, { with: own, without: bare }: Figures): void {
  const ratio = (pick: (figure: Figure) => number): string => {
    const ratios = own.map((figure, index) => pick(figure) / pick(bare[index] ?? figure));
    const sorted = ratios.toSorted((one, other) => one - other);
    const quarter = Math.floor(sorted.length / 4);
    const [low, high] = [sorted[quarter], sorted[sorted.length - 1 - quarter]];
    return `${median(ratios).toFixed(3)} (half of the rounds from ${low?.toFixed(3)} to ${high?.toFixed(3)})`;
  };
  const middle = (of: readonly Figure[], pick: (figure: Figure) => number): number => median(of.map(pick));
  console.log(`${name}, load average ${loadavg()[0]?.toFixed(1)}`);
  console.log(`  throughput with / without: ${ratio(({ rate }) => rate)}`);
  console.log(`  CPU with / without: ${ratio(({ cpuMicroseconds }) => cpuMicroseconds)}`);
  console.log(`  CPU of a signature without: ${middle(bare, ({ cpuMicroseconds }) => cpuMicroseconds).toFixed(0)} µs`);
  const [ownP99, bareP99] = [middle(own, ({ p99 }) => p99), middle(bare, ({ p99 }) => p99)];
  console.log(`  p99 with, without: ${ownP99.toFixed(1)}, ${bareP99.toFixed(1)} ms`);
}

async function startOne(config: Record<string, unknown>): Promise<Measured> {
  return { signer: await startMeasured(keys, 'native', config), votes: new Votes(keys) };
}

/** In turns: one that is warm and idle meanwhile gives up what it has, and would begin at a disadvantage. */
async function warmUp(pair: Pair): Promise<void> {
  for (let load = 0; load < WARM_UP_LOADS; load++) {
    for (const { signer, votes } of [pair.with, pair.without]) {
      await generator.run(signer, { requests: votes.slotBursts() });
      await generator.run(signer, { requests: votes.batches(), connections: 8 });
    }
  }
}

for (let start = 0; start < Number(values.starts); start++) {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-bench-receipts-'));
  const receipts = { storage: 'folder', path: folder, interval_seconds: 10 };
  const pair = { with: await startOne({ receipts }), without: await startOne({}) };
  await warmUp(pair);
  for (const [name, loadOf] of Object.entries(LOADS)) {
    const made = figures.get(name);
    if (made !== undefined) await compare(pair, loadOf, made);
  }
  await Promise.all([pair.with.signer.stop(), pair.without.signer.stop()]);
  rmSync(folder, { recursive: true });
}
for (const [name, made] of figures) print(name, made);
generator.stop();
