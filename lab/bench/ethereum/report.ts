// What `make bench-ethereum` prints of its slots, and its plots. A figure of signatures that were asked for and not
// answered counts them as never answered.

import { median } from '../bars.ts';
import { type Plot, sharesOf } from '../plots.ts';
import type { Kind } from './duties.ts';
import type { SlotResult } from './slot-load.ts';

/** Seconds after a vote became due. 3.0 s are the attestation deadline of Gloas, 4 and 9 other deadlines of a slot. */
const DEADLINES = [1, 2, 3, 4, 9] as const;

/** One slot, and what the signer used for it. */
export interface SlotFigure extends SlotResult {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly peakResidentBytes: number;
  readonly storeBytes: number;
  /** To the disk, by the signer's process. */
  readonly writtenBytes: number;
  readonly commits: number;
}

export interface EthereumRun {
  readonly keys: number;
  readonly mode: 'batch' | 'single';
  readonly slotSeconds: number;
  readonly readySeconds: number;
  readonly slots: readonly SlotFigure[];
  readonly verified: number;
  readonly syncs: string;
  readonly growth: string;
}

export function linesOf(run: EthereumRun): string[] {
  const { slots } = run;
  const votes = latenciesOf(run, 'vote');
  const per = (pick: (slot: SlotFigure) => number): number => median(slots.map(pick));
  const first = slots[0];
  const grown =
    slots.length < 2 ? 0 : ((slots.at(-1)?.storeBytes ?? 0) - (first?.storeBytes ?? 0)) / (slots.length - 1);
  const told: [string, string][] = [
    ['time to ready', `${run.readySeconds.toFixed(1)} s`],
    ...DEADLINES.map((seconds): [string, string] => [`votes answered within ${seconds} s`, percentOf(votes, seconds)]),
    ['in the worst slot within 3 s', worstOf(run, 3)],
    ['last vote of a slot: median, worst', lastOf(run)],
    ...eachOf(run),
    ['votes: p50, p99, p99.9', quantilesOf(votes)],
    ...kindsOf(run).map((kind): [string, string] => [`${kind}: p50, p99, p99.9`, quantilesOf(latenciesOf(run, kind))]),
    ['CPU a slot', `${per(({ cpuSeconds }) => cpuSeconds).toFixed(2)} s`],
    ['load generator: CPU a slot', `${per(({ generatorCpuSeconds }) => generatorCpuSeconds).toFixed(2)} s`],
    [
      'memory, at its peak',
      `${megabytes(per((one) => one.residentBytes))}, ${megabytes(per((one) => one.peakResidentBytes))}`,
    ],
    ['history on disk', megabytes(slots.at(-1)?.storeBytes ?? 0)],
    ['its growth a slot', `${(grown / 1000).toFixed(1)} kB`],
    ['written to disk a slot', megabytes(per(({ writtenBytes }) => writtenBytes))],
    ['commits a slot', per(({ commits }) => commits).toFixed(0)],
    ['fsyncs and O_DSYNC writes', run.syncs],
    ['pruning', run.growth],
    ['signatures verified', `${run.verified}, every one of the measured slots`],
    ['not answered', failuresOf(run)],
  ];
  const title = `${run.keys.toLocaleString('en-US')} keys, ${run.mode === 'batch' ? 'batches' : 'single requests'}, ${slots.length} slots of ${run.slotSeconds} s`;
  return [title, ...told.map(([label, value]) => `  ${label.padEnd(38)}${value}`)];
}

/** Share of the votes that were answered over the time since they became due. */
export function sharePlotOf(runs: readonly EthereumRun[]): Plot {
  const until = Math.min(12, Math.max(...runs.map(({ slotSeconds }) => slotSeconds)));
  return {
    title: 'Votes answered, by time since they became due',
    x: 'seconds',
    y: 'share of the votes',
    curves: runs.map((run) => ({
      name: nameOf(run),
      points: sharesOf(
        latenciesOf(run, 'vote').map((latency) => latency / 1000),
        until,
      ),
    })),
    marks: [{ x: 3, name: 'Gloas: 3 s' }],
  };
}

export function loadPlotOf(runs: readonly EthereumRun[]): Plot {
  const modes = [...new Set(runs.map(({ mode }) => mode))];
  return {
    title: 'p99 of votes, by votes a slot',
    x: 'votes a slot',
    y: 'ms',
    logX: true,
    logY: true,
    curves: modes.map((mode) => ({
      name: mode === 'batch' ? 'batches' : 'single requests',
      points: runs
        .filter((run) => run.mode === mode)
        .map((run): [number, number] => [run.keys / 32, at(latenciesOf(run, 'vote'), 0.99)])
        .filter(([, latency]) => Number.isFinite(latency))
        .toSorted(([one], [other]) => one - other),
    })),
  };
}

/** Bars of all that votes at once: 3.0 s, good 2.0 s. */
function lastOf(run: EthereumRun): string {
  const last = lastVotes(run);
  return `${median(last).toFixed(2)}, ${Math.max(...last).toFixed(2)} s (3.0 s are the deadline, 2.0 s are good)`;
}

function eachOf(run: EthereumRun): [string, string][] {
  const told = lastVotes(run).map((last) => last.toFixed(2));
  return told.length > 20 ? [] : [['  of each slot', `${told.join(', ')} s`]];
}

/** Seconds until the last vote of each slot. */
function lastVotes({ slots }: EthereumRun): number[] {
  return slots.map(({ latencies }) => latencies.vote.reduce((most, one) => Math.max(most, one), 0) / 1000);
}

function nameOf({ keys, mode }: EthereumRun): string {
  return `${keys.toLocaleString('en-US')}, ${mode}`;
}

function kindsOf({ slots }: EthereumRun): Kind[] {
  return (Object.keys(slots[0]?.latencies ?? {}) as Kind[]).filter((kind) => kind !== 'vote');
}

function latenciesOf({ slots }: EthereumRun, kind: Kind): number[] {
  return slots.flatMap(({ latencies }) => [...latencies[kind]]).toSorted((one, other) => one - other);
}

function percentOf(sorted: readonly number[], seconds: number): string {
  const within = sorted.filter((latency) => latency <= seconds * 1000).length;
  return `${((100 * within) / Math.max(1, sorted.length)).toFixed(2)} % of ${sorted.length}`;
}

function worstOf({ slots }: EthereumRun, seconds: number): string {
  const shares = slots.map(
    ({ latencies: { vote } }) => vote.filter((one) => one <= seconds * 1000).length / vote.length,
  );
  return `${(100 * Math.min(...shares)).toFixed(2)} %`;
}

function quantilesOf(sorted: readonly number[]): string {
  const quantiles = [0.5, 0.99, 0.999].map((share) => at(sorted, share).toFixed(1));
  return `${quantiles.join(', ')} ms`;
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function failuresOf({ slots }: EthereumRun): string {
  const counts: Record<string, number> = {};
  for (const { failures } of slots)
    for (const [status, count] of Object.entries(failures)) counts[status] = (counts[status] ?? 0) + count;
  const told = Object.entries(counts).map(([status, count]) => `${count} requests ${status}`);
  return told.length === 0 ? 'none' : told.join(', ');
}
