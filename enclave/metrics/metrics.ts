// Typed handles on every metric of the catalogue, in a registry of their own. The only file that uses the metrics
// library. Recording resolves a series once and then adds to it: it is on the path of every signature. It trusts its
// callers for values and bounds the labels itself.

import assert from 'node:assert/strict';
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { COMMIT } from '../api/commit.ts';
import { VERSION } from '../api/version.ts';
import { MAX_INITIAL_SERIES, METRICS } from './catalogue.ts';
import { type Labels, type MetricEntry, UNKNOWN } from './entry.ts';
import type { MetricHandles } from './handles.ts';
import { watchProcess } from './process.ts';

export interface Metrics extends MetricHandles {
  /** Before each rendering `collect` is called, to set the gauges that are read off rather than counted. */
  onRender(collect: () => void): void;
  /** The Prometheus text format. */
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
  /** Ends the measuring of the event loop. */
  close(): void;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const handles = Object.fromEntries(
    Object.entries(METRICS).map(([key, entry]) => [key, createHandle(entry, registry)]),
  ) as unknown as MetricHandles;
  handles.buildInfo.set(1, { version: VERSION, commit: COMMIT });
  const processWatch = watchProcess(handles);
  const collectors = [processWatch.collect];
  return {
    ...handles,
    onRender: (collect) => void collectors.push(collect),
    async render() {
      for (const collect of collectors) collect();
      return { contentType: registry.contentType, body: await registry.metrics() };
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
      return {
        inc: (labels?: AnyLabels) => series(labels).inc(1),
        add: (amount: number, labels?: AnyLabels) => series(labels).inc(amount),
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

/** Finds the series of given label values, making each once. Values count in a mixed radix, first label highest. */
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
        indexOf.get(given[name] ?? UNKNOWN) ?? (foldsOthers ? indexOf.get(UNKNOWN) : undefined);
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

/** The label values whose place in the mixed radix is `index`, in the order of the catalogue. */
function labelsAt(labels: Labels, index: number): AnyLabels {
  let rest = index;
  const lastFirst = Object.entries(labels)
    .toReversed()
    .map(([name, { values }]) => {
      const value = values[rest % values.length] ?? UNKNOWN;
      rest = Math.floor(rest / values.length);
      return [name, value] as const;
    });
  return Object.fromEntries(lastFirst.toReversed());
}
