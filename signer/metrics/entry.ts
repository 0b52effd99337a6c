// What a metric of the catalogue says of itself, and how a row of it is written. Labels are bounded by construction:
// each names all of its values, or folds what it does not name into `unknown`.

export interface ClosedLabel<Value extends string = string> {
  readonly values: readonly Value[];
  readonly foldsOthers: false;
}

/** A label whose value comes from elsewhere: what is not listed counts as `unknown`. */
export interface FoldedLabel {
  readonly values: readonly string[];
  readonly foldsOthers: true;
}

export type Labels = Readonly<Record<string, ClosedLabel | FoldedLabel>>;

export interface MetricEntry<Type extends string = 'counter' | 'gauge' | 'histogram', L extends Labels = Labels> {
  readonly type: Type;
  readonly name: string;
  readonly help: string;
  readonly labels: L;
  /** Upper bounds of a histogram, ascending, in the unit of its name. */
  readonly buckets: readonly number[];
}

export const UNKNOWN = 'unknown';

export function closed<const Value extends string>(...values: Value[]): ClosedLabel<Value> {
  return { values, foldsOthers: false };
}

export function folded(...values: string[]): FoldedLabel {
  return { values: [...values, UNKNOWN], foldsOthers: true };
}

export function counter<L extends Labels>(name: string, help: string, labels: L): MetricEntry<'counter', L> {
  return { type: 'counter', name, help, labels, buckets: [] };
}

export function gauge<L extends Labels>(name: string, help: string, labels: L): MetricEntry<'gauge', L> {
  return { type: 'gauge', name, help, labels, buckets: [] };
}

export function histogram<L extends Labels>(
  name: string,
  help: string,
  labels: L,
  buckets: readonly number[],
): MetricEntry<'histogram', L> {
  return { type: 'histogram', name, help, labels, buckets };
}
