// docs/reference/metrics.md, generated from the catalogue: the metrics are an interface, and described like one.

import { ERROR_REASONS } from '../../signer/api/errors.ts';
import { OPERATIONS } from '../../signer/api/operations.ts';
import { MAX_INITIAL_SERIES, METRICS } from '../../signer/metrics/catalogue.ts';
import { type Labels, type MetricEntry, UNKNOWN_LABEL } from '../../signer/metrics/entry.ts';
import { capitalised, code } from './markdown.ts';

/** A longer list of values stands at the first metric that has it. */
const LONGEST_REPEATED = 4;

/** Lists that another page has whole. */
const ELSEWHERE: readonly { readonly values: readonly string[]; readonly text: string }[] = [
  { values: Object.keys(ERROR_REASONS), text: 'every [reason](errors.md)' },
  { values: OPERATIONS, text: 'every [operation](authorization.md#operations)' },
];

export function metricsReference(): string {
  const entries: readonly MetricEntry[] = Object.values(METRICS);
  return [
    '# Metrics',
    '',
    'Generated from `signer/metrics/catalogue.ts`. Served as Prometheus text at `GET /metrics` on the metrics',
    'listener. Names are stable. A counter or histogram starts at zero, with all of its series when they are at most',
    `${MAX_INITIAL_SERIES}; a gauge appears when it is first set. The value \`${UNKNOWN_LABEL}\` stands for whatever is not listed.`,
    'Reasons are those of the error bodies.',
    '',
    ...entries.flatMap((entry) => section(entry, entries)),
  ].join('\n');
}

function section(entry: MetricEntry, entries: readonly MetricEntry[]): string[] {
  return [
    `## \`${entry.name}\``,
    '',
    `${capitalised(entry.type)}. ${entry.help}`,
    '',
    ...labelList(entry.labels, entries),
    ...bucketText(entry, entries),
  ];
}

function bucketText({ name, buckets }: MetricEntry, entries: readonly MetricEntry[]): string[] {
  if (buckets.length === 0) return [];
  const first = entries.find((entry) => entry.buckets === buckets);
  return [`Buckets${first?.name === name ? `: ${buckets.join(', ')}` : ` as of \`${first?.name}\``}.`, ''];
}

function labelList(labels: Labels, entries: readonly MetricEntry[]): string[] {
  const lines = Object.entries(labels).map(([name, label]) => {
    const first = entries.find((entry) => Object.values(entry.labels).includes(label));
    const isLong = label.values.length > LONGEST_REPEATED;
    return `- \`${name}\`: ${isLong && first?.labels !== labels ? `as of \`${first?.name}\`` : valuesText(label.values)}`;
  });
  return lines.length === 0 ? [] : [...lines, ''];
}

function valuesText(values: readonly string[]): string {
  const [first = '', last = ''] = [values[0], values.at(-1)];
  if (values.length > LONGEST_REPEATED && values.every((value, index) => value === String(index))) {
    return `\`${first}\` to \`${last}\``;
  }
  const elsewhere = ELSEWHERE.filter((list) => list.values.every((value) => values.includes(value)));
  const own = values.filter((value) => elsewhere.every((list) => !list.values.includes(value)));
  return [...elsewhere.map(({ text }) => text), ...own.map(code)].join(', ');
}
