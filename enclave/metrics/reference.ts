// docs/reference/metrics.md, generated from the catalogue: the metrics are an interface, and described like one.

import { MAX_INITIAL_SERIES, METRICS } from './catalogue.ts';
import { type Labels, type MetricEntry, UNKNOWN } from './entry.ts';

export function metricsReference(): string {
  const entries: readonly MetricEntry[] = Object.values(METRICS);
  return [
    '# Metrics',
    '',
    'Generated from `enclave/metrics/catalogue.ts`. Served as Prometheus text at `GET /metrics` on the metrics',
    'listener. Names are stable. A counter or histogram starts at zero, with all of its series when they are at most',
    `${MAX_INITIAL_SERIES}; a gauge appears when it is first set. The value \`${UNKNOWN}\` stands for whatever is not listed.`,
    'Reasons are those of the error bodies (`errors.md`).',
    '',
    ...entries.flatMap(section),
  ].join('\n');
}

function section(entry: MetricEntry): string[] {
  return [
    `## \`${entry.name}\``,
    '',
    `${capitalised(entry.type)}. ${entry.help}`,
    '',
    ...labelTable(entry.labels),
    ...(entry.buckets.length === 0 ? [] : [`Buckets: ${entry.buckets.join(', ')}.`, '']),
  ];
}

function labelTable(labels: Labels): string[] {
  const rows = Object.entries(labels).map(
    ([name, { values }]) => `| \`${name}\` | ${values.map((value) => `\`${value}\``).join(', ')} |`,
  );
  return rows.length === 0 ? [] : ['| Label | Values |', '|---|---|', ...rows, ''];
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
