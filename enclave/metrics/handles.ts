// What a metric of the catalogue is to whoever records it: its type says which labels and which of their values there
// are.

import type { METRICS } from './catalogue.ts';
import type { ClosedLabel, Labels, MetricEntry } from './entry.ts';

type LabelValues<L extends Labels> = {
  readonly [Name in keyof L]: L[Name] extends ClosedLabel<infer Value> ? Value : string;
};
/** Nothing for a metric without labels. */
type LabelArguments<L extends Labels> = keyof L extends never ? [] : [labels: LabelValues<L>];

export interface CounterHandle<L extends Labels> {
  inc(...labels: LabelArguments<L>): void;
  add(amount: number, ...labels: LabelArguments<L>): void;
}

export interface GaugeHandle<L extends Labels> {
  set(value: number, ...labels: LabelArguments<L>): void;
}

export interface HistogramHandle<L extends Labels> {
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

export type MetricHandles = { readonly [Key in keyof typeof METRICS]: Handle<(typeof METRICS)[Key]> };
