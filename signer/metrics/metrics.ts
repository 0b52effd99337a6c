// Typed handles on every metric of the catalogue. Recording resolves a series once: it is on the path of every
// signature.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { COMMIT } from '../api/commit.ts';
import type { ErrorReason, SLASHING_KEY_FAULTS, SLASHING_REFUSALS } from '../api/errors.ts';
import type { ClientFault } from '../api/forks.ts';
import { VERSION } from '../api/version.ts';
import { MAX_INITIAL_SERIES, METRICS } from './catalogue.ts';
import { type ClosedLabel, type Labels, type MetricEntry, UNKNOWN_LABEL } from './entry.ts';

export interface Metrics extends MetricHandles {
  /** `collect` sets the gauges that are read off rather than counted. */
  onRender(collect: () => void): void;
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
  close(): void;
}

/** A value of one series; a histogram's has `le` among its labels, and the name of its part. */
export interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly metricName?: string | undefined;
}

/** Prometheus text of what the catalogue counts, under names that are not the catalogue's. */
export type OtherNames = (read: (name: string) => Promise<readonly MetricSample[]>) => Promise<string>;

export function createMetrics(otherNames: OtherNames = async () => ''): Metrics {
  const registry = new Registry();
  const handles = Object.fromEntries(
    Object.entries(METRICS).map(([key, entry]) => [key, createHandle(entry, registry)]),
  ) as unknown as MetricHandles;
  handles.buildInfo.set(1, { version: VERSION, commit: COMMIT });
  const processWatch = watchProcess(handles);
  const collectors = [processWatch.collect];
  const samples = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values ?? [];
  return {
    ...handles,
    onRender: (collect) => void collectors.push(collect),
    async render() {
      for (const collect of collectors) collect();
      return { contentType: registry.contentType, body: `${await registry.metrics()}${await otherNames(samples)}` };
    },
    close: processWatch.close,
  };
}

export function statusClass(status: number): '1xx' | '2xx' | '3xx' | '4xx' | '5xx' {
  if (status < 200) return '1xx';
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}

/** What a request reports (HttpObserver of http/audit.ts). */
export function httpObserver(metrics: Metrics) {
  return {
    requestEnded: (route: string, status: number) => metrics.httpRequests.inc({ route, status: statusClass(status) }),
    signingEnded: (operation: string | undefined, outcome: 'signed' | ErrorReason, seconds: number, count: number) => {
      const labels = { operation: operation ?? UNKNOWN_LABEL };
      metrics.signingRequests.add(count, { ...labels, outcome });
      for (let each = 0; each < count; each++) metrics.signingSeconds.observe(seconds, labels);
    },
    requestHealed: (fault: ClientFault, count: number) => metrics.healedRequests.add(count, { client_fault: fault }),
    authRejected: (reason: ErrorReason) => metrics.authRejections.inc({ reason }),
    routeFailed: (kind: 'thrown' | 'escaped') => metrics.routeFaults.inc({ kind }),
  };
}

/** What a check reports (SlashingProtectionOptions of slashing/protection.ts). */
export function slashingObserver(metrics: Metrics) {
  return {
    onBatch: (size: number, seconds: number, outcome: 'committed' | 'failed') => {
      metrics.slashingBatchMessages.observe(size);
      metrics.slashingBatchSeconds.observe(seconds, { outcome });
    },
    onRefusal: (reason: (typeof SLASHING_REFUSALS | typeof SLASHING_KEY_FAULTS)[number]) =>
      metrics.slashingRefusals.inc({ reason }),
  };
}

type AnyLabels = Readonly<Record<string, string>>;

function createHandle(entry: MetricEntry, registry: Registry) {
  const configuration = {
    name: entry.name,
    help: entry.help,
    labelNames: Object.keys(entry.labels),
    registers: [registry],
  };
  switch (entry.type) {
    case 'counter': {
      const counter = new Counter<string>(configuration);
      const series = seriesOf(entry, (labels) => counter.labels(labels));
      for (const labels of initialLabels(entry)) series(labels).inc(0);
      const totals = new Map<string, number>();
      return {
        inc: (labels?: AnyLabels) => series(labels).inc(1),
        add: (amount: number, labels?: AnyLabels) => series(labels).inc(amount),
        reach(total: number, labels: AnyLabels = {}): void {
          const name = JSON.stringify(labels);
          series(labels).inc(total - (totals.get(name) ?? 0));
          totals.set(name, total);
        },
      };
    }
    case 'gauge': {
      const gauge = new Gauge<string>(configuration);
      const series = seriesOf(entry, (labels) => gauge.labels(labels));
      return { set: (value: number, labels?: AnyLabels) => series(labels).set(value) };
    }
    case 'histogram': {
      const histogram = new Histogram<string>({ ...configuration, buckets: [...entry.buckets] });
      const series = seriesOf(entry, (labels) => histogram.labels(labels));
      for (const labels of initialLabels(entry)) histogram.zero(labels);
      return { observe: (value: number, labels?: AnyLabels) => series(labels).observe(value) };
    }
  }
}

/** Values count in a mixed radix, first label highest. */
function seriesOf<Series>(entry: MetricEntry, make: (labels: AnyLabels) => Series): (labels?: AnyLabels) => Series {
  const positions = Object.entries(entry.labels).map(([name, { values, foldsOthers }]) => ({
    name,
    values,
    foldsOthers,
    indexOf: new Map(values.map((value, index) => [value, index])),
  }));
  const made: (Series | undefined)[] = [];
  return (given = {}) => {
    let index = 0;
    for (const { name, values, indexOf, foldsOthers } of positions) {
      const position: number | undefined =
        indexOf.get(given[name] ?? UNKNOWN_LABEL) ?? (foldsOthers ? indexOf.get(UNKNOWN_LABEL) : undefined);
      assert(position !== undefined, `${entry.name} has no ${name} "${given[name]}"`);
      index = index * values.length + position;
    }
    const series = made[index] ?? make(labelsAt(entry.labels, index));
    made[index] = series;
    return series;
  };
}

function initialLabels(entry: MetricEntry): AnyLabels[] {
  const count = Object.values(entry.labels).reduce((product, { values }) => product * values.length, 1);
  if (count > MAX_INITIAL_SERIES) return [];
  return Array.from({ length: count }, (_, index) => labelsAt(entry.labels, index));
}

function labelsAt(labels: Labels, index: number): AnyLabels {
  let rest = index;
  const lastFirst = Object.entries(labels)
    .toReversed()
    .map(([name, { values }]) => {
      const value = values[rest % values.length] ?? UNKNOWN_LABEL;
      rest = Math.floor(rest / values.length);
      return [name, value] as const;
    });
  return Object.fromEntries(lastFirst.toReversed());
}

// Metrics of the process itself, read when the metrics are.

interface ProcessWatch {
  collect(): void;
  close(): void;
}

const LAG_RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

function watchProcess(metrics: MetricHandles): ProcessWatch {
  const delay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  delay.enable();
  metrics.processStartTime.set(performance.timeOrigin / 1000);

  return {
    collect() {
      const { user, system } = process.cpuUsage();
      metrics.processCpuSeconds.reach((user + system) / MICROSECONDS);
      const memory = process.memoryUsage();
      metrics.processResidentBytes.set(memory.rss);
      metrics.processHeapBytes.set(memory.heapUsed);
      metrics.processExternalBytes.set(memory.external);
      if (process.platform === 'linux') metrics.processFileDescriptors.set(openFileDescriptors());
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.percentile(50)), { statistic: 'p50' });
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.percentile(99)), { statistic: 'p99' });
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.max), { statistic: 'max' });
      delay.reset();
    },
    close: () => void delay.disable(),
  };
}

/** The runtime records the time between two looks; what exceeds the interval is lag. */
function lagSeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS - LAG_RESOLUTION_MS / 1000);
}

function openFileDescriptors(): number {
  return readdirSync('/proc/self/fd').length - 1; // without the one that this reading opened
}

// The handle of a metric: its type says which labels and which of their values there are.
type LabelValues<L extends Labels> = {
  readonly [Name in keyof L]: L[Name] extends ClosedLabel<infer Value> ? Value : string;
};
type LabelArguments<L extends Labels> = keyof L extends never ? [] : [labels: LabelValues<L>];

interface CounterHandle<L extends Labels> {
  inc(...labels: LabelArguments<L>): void;
  add(amount: number, ...labels: LabelArguments<L>): void;
  /** Adds what a total that is counted elsewhere has grown by since it was last given. */
  reach(total: number, ...labels: LabelArguments<L>): void;
}

interface GaugeHandle<L extends Labels> {
  set(value: number, ...labels: LabelArguments<L>): void;
}

interface HistogramHandle<L extends Labels> {
  observe(value: number, ...labels: LabelArguments<L>): void;
}

type Handle<Entry> =
  Entry extends MetricEntry<'counter', infer L>
    ? CounterHandle<L>
    : Entry extends MetricEntry<'gauge', infer L>
      ? GaugeHandle<L>
      : Entry extends MetricEntry<'histogram', infer L>
        ? HistogramHandle<L>
        : never;

type MetricHandles = { readonly [Key in keyof typeof METRICS]: Handle<(typeof METRICS)[Key]> };
