// Every series that Prometheus has of us: the catalogues of signer and parent proxy, what scraping adds, and what our
// rules record. Judges an expression by it.

import { PROXY_METRICS as PARENT_PROXY } from '../../parent-proxy/metrics.ts';
import { METRICS as SIGNER } from '../../signer/metrics/catalogue.ts';
import { groupingLabels, type Matcher, selectorsOf } from './promql.ts';

export type LabelValues = ReadonlyMap<string, readonly string[] | undefined>;
export type KnownMetrics = Map<string, LabelValues>;

export const JOBS = ['strongroom', 'strongroom-parent-proxy'];
const SCRAPED: LabelValues = new Map([
  ['job', JOBS],
  ['instance', undefined],
]);

export function knownMetrics(): KnownMetrics {
  const known: KnownMetrics = new Map([['up', SCRAPED]]);
  for (const { name, type, labels } of Object.values(SIGNER)) {
    const values = new Map([
      ...SCRAPED,
      ...Object.entries(labels).map(([label, { values }]) => [label, values] as const),
    ]);
    if (type !== 'histogram') known.set(name, values);
    else
      for (const part of ['sum', 'count', 'bucket'])
        known.set(`${name}_${part}`, part === 'bucket' ? withBound(values) : values);
  }
  for (const { name, labels } of Object.values(PARENT_PROXY)) {
    const listed = Object.entries(labels as Readonly<Record<string, string>>);
    known.set(name, new Map([...SCRAPED, ...listed.map(([label, words]) => [label, valuesIn(words)] as const)]));
  }
  return known;
}

/** The parent proxy's table has values in words: a list, or a description. */
function valuesIn(words: string): readonly string[] | undefined {
  return words.includes(' vsock ') ? undefined : words.split(', ');
}

function withBound(labels: LabelValues): LabelValues {
  return new Map([...labels, ['le', undefined]]);
}

/** What a rule records: the labels that it groups by, of the metrics that it is made from. */
export function recordedBy(expression: string, known: KnownMetrics): LabelValues {
  const grouped = groupingLabels(expression).filter((label) => label !== 'le');
  const sources = selectorsOf(expression).map(({ metric }) => known.get(metric));
  return new Map(grouped.map((label) => [label, sources.find((labels) => labels?.has(label))?.get(label)]));
}

/** What is wrong with an expression; nothing when every name in it is known. */
export function problemsOf(expression: string, known: KnownMetrics): string[] {
  const selectors = selectorsOf(expression);
  const labels = new Set(selectors.flatMap(({ metric }) => [...(known.get(metric)?.keys() ?? [])]));
  return [
    ...(selectors.length === 0 ? ['no metric'] : []),
    ...selectors.flatMap(({ metric, matchers }) => {
      const values = known.get(metric);
      if (values === undefined) return [`unknown metric ${metric}`];
      return matchers.flatMap((matcher) => problemOf(matcher, values).map((problem) => `${metric}: ${problem}`));
    }),
    ...groupingLabels(expression)
      .filter((label) => !labels.has(label))
      .map((label) => `no metric in it has the label ${label}`),
  ];
}

/** Each alternative of a pattern has to be there, so that none goes stale. */
function problemOf({ label, operator, value }: Matcher, labels: LabelValues): string[] {
  if (!labels.has(label)) return [`unknown label ${label}`];
  const values = labels.get(label);
  if (values === undefined || value.startsWith('$')) return [];
  const isPattern = operator.endsWith('~');
  return (isPattern ? value.split('|') : [value]).flatMap((wanted) => {
    const isThere = values.some((each) => (isPattern ? new RegExp(`^(?:${wanted})$`).test(each) : each === wanted));
    return isThere ? [] : [`${label} is never ${wanted}`];
  });
}
