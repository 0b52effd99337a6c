// `make bench`: the whole path over HTTP (token, rules, durable SQLite, root, signature) beside raw BLS signing, in one
// run. The machine is shared: raw signing is measured before and after each figure and ratios are medians of the
// rounds. S: CPU of one raw signature. R2: raw signatures a second on both cores. The load generator runs on the same
// cores.
//
// Usage: bench [--core native|portable] [--rounds N] [--warm-up N] [--keystores N] [--only NAME]

import { parseArgs } from 'node:util';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { block, randaoReveal, type TestKey, testKey } from '../support/requests.ts';
import { BARS, type Bar, type Core, median, row } from './bars.ts';
import { measureEnvelopes } from './envelopes.ts';
import type { LoadResult } from './load-generator.ts';
import {
  commits,
  cpuSeconds,
  GROUP,
  type Load,
  LoadGenerator,
  peakResidentBytes,
  residentBytes,
  startMeasured,
  Votes,
} from './measured-signer.ts';
import { measureRawSigning, type RawRate } from './raw-signing.ts';
import { measureTimeToReady } from './time-to-ready.ts';

const KEYS = GROUP * 16;
const RAW_SECONDS = 1.5;
/** V8 gives its young generation back some 10 seconds after the load, 60 MB at once. */
const SETTLING_SECONDS = 20;
/** Options of Node for a signer that collects its garbage each second. */
const COLLECTING = '--expose-gc --import=data:text/javascript,setInterval(gc,1000).unref()';

const { values } = parseArgs({
  options: {
    core: { type: 'string', default: 'native' },
    rounds: { type: 'string', default: '5' },
    /** Loads before the first figure. V8 goes on optimizing for some 40,000 requests. */
    'warm-up': { type: 'string', default: '8' },
    /** Real scrypt keystores of `time to ready`: 1.4 CPU seconds each when they have to be made, then 0.7. */
    keystores: { type: 'string', default: '1000' },
    only: { type: 'string' },
  },
});
const core: Core = values.core === 'portable' ? 'portable' : 'native';
const rounds = Number(values.rounds);
const bars = BARS[core];

interface Figure {
  readonly cpuPerS: number;
  readonly ratePerR2: number;
  /** The load generator's, on the same cores. */
  readonly generatorCpuPerS: number;
  /** The time of the load in units of `requests / R2`. */
  readonly timeTimesR2: number;
  readonly result: LoadResult;
  readonly fsyncs: number;
}

const SCENARIOS: Readonly<Record<string, () => Promise<void>>> = {
  'signing under load': signingUnderLoad,
  'batch burst': batchBurst,
  'block beside batches': blockBesideBatches,
  'ten thousand at once': tenThousandAtOnce,
  'full queue': fullQueue,
  'priority operations': priorityOperations,
  'memory per key': memoryPerKey,
  envelopes: () => measureEnvelopes(generator, core, rounds, say),
  'time to ready': () => measureTimeToReady(core, { keystores: Number(values.keystores) }, say),
};

say(`${core} core, medians of ${rounds} rounds`);
const generator = await LoadGenerator.start();
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (values.only === undefined || name.includes(values.only)) await scenario();
}
generator.stop();

async function signingUnderLoad(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core);
  for (let round = 0; round < Number(values['warm-up']); round++)
    await generator.run(signer, { requests: votes.slotBursts() });

  const burst = await measure(signer, () => ({ requests: votes.slotBursts() }));
  say(`slot burst, groups of ${GROUP} with one root, 64 connections`);
  sayMedian('CPU / S', burst, (figure) => figure.cpuPerS, bars.burstCpu);
  sayMedian('throughput / R2', burst, (figure) => figure.ratePerR2, bars.burstRate);
  sayMedian('load generator: CPU / S', burst, (figure) => figure.generatorCpuPerS);
  sayMedian('fsyncs per signature', burst, (figure) => figure.fsyncs, bars.fsyncs);

  const distinct = await measure(signer, () => ({ requests: votes.distinct() }));
  say('distinct roots, 64 connections');
  sayMedian('CPU / S', distinct, (figure) => figure.cpuPerS, bars.distinctCpu);
  sayMedian('throughput / R2', distinct, (figure) => figure.ratePerR2, bars.distinctRate);
  sayMedian('load generator: CPU / S', distinct, (figure) => figure.generatorCpuPerS);

  await generator.run(signer, { requests: votes.slotBursts(), tls: true }); // warm
  const tls = await measure(signer, () => ({ requests: votes.slotBursts(), tls: true }));
  say('slot burst over TLS');
  sayMedian('CPU / S', tls, (figure) => figure.cpuPerS, bars.tlsCpu);
  sayMedian('throughput / R2', tls, (figure) => figure.ratePerR2);

  const ratePerSecond = KEYS / medianOf(distinct, (figure) => figure.result.seconds) / 2;
  const half = await measure(signer, () => ({
    requests: votes.distinct(Math.min(KEYS, Math.ceil(ratePerSecond * 3))),
    ratePerSecond,
  }));
  say(`half load, distinct roots, ${ratePerSecond.toFixed(0)} a second`);
  sayMedian('p50', half, ({ result }) => result.p50);
  sayMedian('p99', half, ({ result }) => result.p99, bars.halfLoadP99);
  sayMedian('CPU / S', half, (figure) => figure.cpuPerS);

  const lone = await measure(signer, () => ({ requests: votes.distinct(300), connections: 1 }));
  say('lone request');
  sayMedian('p50', lone, ({ result }) => result.p50, bars.loneP50);
  sayMedian('p99', lone, ({ result }) => result.p99);
  await signer.stop();
}

async function batchBurst(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core);
  const load = (): Load => ({ requests: Array.from({ length: 3 }, () => votes.batches()).flat(), connections: 8 });
  for (let round = 0; round < Number(values['warm-up']); round++) await generator.run(signer, load());
  const figures = await measure(signer, load, rounds, GROUP);
  say(`batch burst, one request for ${GROUP} keys, 8 connections`);
  sayMedian('CPU / S', figures, (figure) => figure.cpuPerS, bars.batchCpu);
  sayMedian('throughput / R2', figures, (figure) => figure.ratePerR2, bars.batchRate);
  sayMedian('load generator: CPU / S', figures, (figure) => figure.generatorCpuPerS);
  sayMedian('fsyncs per signature', figures, (figure) => figure.fsyncs, bars.fsyncs);
  await signer.stop();
}

/** Proposals at a steady rate, beside ten batches that are always under way. */
async function blockBesideBatches(): Promise<void> {
  const [batches, size] = [10, 2048];
  const keys = testKeys(batches * size + 300);
  const votes = new Votes(keys.slice(0, batches * size));
  const signer = await startMeasured(keys, core, { signing: { queue_buffer_size: batches * size } });
  const beside = await LoadGenerator.start();
  const proposers = keys.slice(batches * size);
  let slot = 32;
  const blocks = (): Load => {
    slot += 1;
    const requests = proposers.map(({ publicKey }) => ({ publicKey, body: JSON.stringify(block({ slot })) }));
    return { requests, connections: 8, ratePerSecond: 100 };
  };
  const load = (): Load => ({
    requests: Array.from({ length: 2 }, () => votes.batches(batches * size, size)).flat(),
    connections: batches,
  });
  await Promise.all([generator.run(signer, load()), beside.run(signer, blocks())]); // warm
  const results = [];
  for (let round = 0; round < rounds; round++) {
    results.push(await Promise.all([generator.run(signer, load()), beside.run(signer, blocks())]));
  }
  beside.stop();
  for (const { statuses } of results.flat()) {
    if (Object.keys(statuses).some((status) => status !== '200')) throw new Error(JSON.stringify(statuses));
  }
  say(`block proposals, 100 a second, beside ${batches} batches of ${size} keys`);
  say(row('batches: p50, ms', median(results.map(([{ p50 }]) => p50))));
  say(row('blocks: p50, ms', median(results.map(([, { p50 }]) => p50))));
  say(row('blocks: p99', median(results.map(([, { p99 }]) => p99)), bars.blockBesideBatchesP99));
  await signer.stop();
}

async function tenThousandAtOnce(): Promise<void> {
  const count = 10_000;
  const keys = testKeys(count);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core, { signing: { queue_buffer_size: count } });
  for (let round = 0; round < 3; round++) await generator.run(signer, { requests: votes.oneRoot() });
  const figures = await measure(signer, () => ({ requests: votes.oneRoot(), connections: count }), Math.min(rounds, 3));
  say('10,000 at once, each on a connection of its own, one root');
  sayMedian('time × R2 / 10,000', figures, (figure) => figure.timeTimesR2, bars.tenThousand);
  sayMedian('slowest answer, ms', figures, ({ result }) => result.slowest['200'] ?? Number.NaN);
  await signer.stop();
}

/** Few permits and a short queue, so that the surplus meets a full one whatever the machine's speed. */
async function fullQueue(): Promise<void> {
  const count = 6000;
  const keys = testKeys(count);
  const votes = new Votes(keys);
  const signing = { max_concurrent_jobs: 200, queue_buffer_size: 400 };
  const signer = await startMeasured(keys, core, { signing });
  for (let round = 0; round < 3; round++) await generator.run(signer, { requests: votes.oneRoot() });
  const before = residentBytes(signer);
  const result = await generator.run(signer, { requests: votes.oneRoot(), connections: count });
  const { '200': signed = 0, '503': refused = 0, ...lost } = result.statuses;
  say(
    `6,000 connections at once over ${signing.max_concurrent_jobs} permits and a queue of ${signing.queue_buffer_size}`,
  );
  say(row('signed', signed));
  say(row('refused with 503', refused));
  say(
    row(
      'neither (has to be 0)',
      Object.values(lost).reduce((sum, each) => sum + each, 0),
    ),
  );
  say(row('slowest 503, ms', result.slowest['503'] ?? 0));
  say(row('slowest signature, ms', result.slowest['200'] ?? 0));
  say(row('resident memory before, MB', before / 1e6));
  say(row('and at its peak, MB', peakResidentBytes(signer) / 1e6));
  await signer.stop();
}

/**
 * RANDAO reveals at a steady rate, beside attestations as fast as they are answered on more connections than there are
 * permits.
 */
async function priorityOperations(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signing = {
    max_concurrent_jobs: 200,
    priority: { enabled: true, max_concurrent_jobs: 50, operations: ['RANDAO_REVEAL'] },
  };
  const signer = await startMeasured(keys, core, { signing });
  for (let round = 0; round < 4; round++) await generator.run(signer, { requests: votes.slotBursts() });
  const reveal = JSON.stringify(randaoReveal());
  const reveals = keys.slice(0, 100).map(({ publicKey }) => ({ publicKey, body: reveal }));
  const steady = await LoadGenerator.start();
  const [normal, priority] = await Promise.all([
    generator.run(signer, { requests: votes.distinct(), connections: 512 }),
    steady.run(signer, { requests: reveals, connections: 8, ratePerSecond: 100 }),
  ]);
  steady.stop();
  say('priority operations under 512 connections of others');
  say(row('others: p50, ms', normal.p50));
  say(row('priority: p50, ms', priority.p50));
  say(row('priority: p99, ms', priority.p99));
  await signer.stop();
}

/** The difference of two signers that have loaded their keys and collected their garbage. */
async function memoryPerKey(): Promise<void> {
  const few = 1000;
  const many = 21_000;
  const keys = testKeys(many);
  const [small, large] = [await residentAfterLoading(keys.slice(0, few)), await residentAfterLoading(keys)];
  say(`resident memory of ${many} keys beside that of ${few}`);
  say(row('per key', (large - small) / (many - few), bars.bytesPerKey));
}

async function residentAfterLoading(keys: readonly TestKey[]): Promise<number> {
  const signer = await startMeasured(keys, core, {}, COLLECTING);
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < SETTLING_SECONDS; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    least = Math.min(least, residentBytes(signer));
  }
  await signer.stop();
  return least;
}

/** Rounds of a load, each between two measurements of raw signing. */
async function measure(signer: RunningSigner, load: () => Load, times = rounds, keysPerRequest = 1): Promise<Figure[]> {
  const figures: Figure[] = [];
  let before = await measureRawSigning(RAW_SECONDS);
  for (let round = 0; round < times; round++) {
    const plan = load();
    const used = { cpu: cpuSeconds(signer), commits: await commits(signer) };
    const result = await generator.run(signer, plan);
    const cpu = cpuSeconds(signer) - used.cpu;
    const after = await measureRawSigning(RAW_SECONDS);
    const fsyncs = (await commits(signer)) - used.commits; // now: the metrics listener gives the same text for a second
    const raw = mean(before, after);
    before = after;
    const answered = result.statuses['200'] ?? 0;
    const signed = answered * keysPerRequest;
    if (answered !== plan.requests.length)
      throw new Error(`not everything was signed: ${JSON.stringify(result.statuses)}`);
    figures.push({
      cpuPerS: cpu / signed / raw.s,
      ratePerR2: signed / result.seconds / raw.r2,
      generatorCpuPerS: result.cpuSeconds / signed / raw.s,
      timeTimesR2: (result.seconds * raw.r2) / signed,
      fsyncs: fsyncs / signed,
      result,
    });
  }
  return figures;
}

function mean(one: RawRate, other: RawRate): RawRate {
  return { s: (one.s + other.s) / 2, r2: (one.r2 + other.r2) / 2 };
}

function medianOf(figures: readonly Figure[], pick: (figure: Figure) => number): number {
  return median(figures.map(pick));
}

/** A figure of all rounds, beside its bar if it has one. */
function sayMedian(label: string, figures: readonly Figure[], pick: (figure: Figure) => number, bar?: Bar): void {
  say(row(label, medianOf(figures, pick), bar));
}

function testKeys(count: number): TestKey[] {
  return Array.from({ length: count }, (_, index) => testKey(index));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
