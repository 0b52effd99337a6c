// What the scenarios of `make bench` share: the options of the run, the load generator, and figures between two
// measurements of raw signing.

import { parseArgs } from 'node:util';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { type TestKey, testKey } from '../../test/support/requests.ts';
import { BARS, type Bar, type Core, median, row } from './bars.ts';
import type { LoadResult } from './load-generator.ts';
import { commits, cpuSeconds, GROUP, type Load, LoadGenerator } from './measured-signer.ts';
import { measureRawSigning, type RawRate } from './raw-signing.ts';

export const KEYS = GROUP * 16;
const RAW_SECONDS = 1.5;

export const { values } = parseArgs({
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
export const core: Core = values.core === 'portable' ? 'portable' : 'native';
export const rounds = Number(values.rounds);
export const bars = BARS[core];

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
export const generator = await LoadGenerator.start();

/** Rounds of a load, each between two measurements of raw signing. */
export async function measure(
  signer: RunningSigner,
  load: () => Load,
  times = rounds,
  keysPerRequest = 1,
): Promise<Figure[]> {
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

export function medianOf(figures: readonly Figure[], pick: (figure: Figure) => number): number {
  return median(figures.map(pick));
}

/** A figure of all rounds, beside its bar if it has one. */
export function sayMedian(
  label: string,
  figures: readonly Figure[],
  pick: (figure: Figure) => number,
  bar?: Bar,
): void {
  say(row(label, medianOf(figures, pick), bar));
}

export function testKeys(count: number): TestKey[] {
  return Array.from({ length: count }, (_, index) => testKey(index));
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
