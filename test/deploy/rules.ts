// The alert rules as tests read them, and every series that a rule or a dashboard can ask for: those of the catalogues,
// those that the rules record, and the alerts themselves.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type KnownMetrics, knownMetrics, recordedBy } from './known-metrics.ts';

export const PROMETHEUS_FOLDER = join(import.meta.dirname, '../../deploy/prometheus');

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export function readYaml(name: string): unknown {
  return parse(readFileSync(join(PROMETHEUS_FOLDER, name), 'utf8'));
}

const { groups } = readYaml('strongroom.rules.yaml') as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
export const rules = groups.flatMap((group) => group.rules);
export const alerts = rules.filter(({ alert }) => alert !== undefined);

export function knownSeries(): KnownMetrics {
  const known = knownMetrics();
  for (const { record, expr } of rules) if (record !== undefined) known.set(record, recordedBy(expr, known));
  const severities = new Set(alerts.flatMap(({ labels }) => labels?.['severity'] ?? []));
  known.set(
    'ALERTS',
    new Map<string, readonly string[] | undefined>([
      ['alertname', alerts.flatMap(({ alert }) => alert ?? [])],
      ['alertstate', ['pending', 'firing']],
      ['severity', [...severities]],
      ['instance', undefined],
    ]),
  );
  return known;
}
