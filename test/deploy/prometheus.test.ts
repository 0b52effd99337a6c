// The alert rules: what they name is in the catalogues of metrics, every alert says what it is and where to read on,
// promtool takes the files, and the main alerts fire when they should and not before (strongroom.tests.yaml).

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lacking } from '../support/needs.ts';
import { JOBS, problemsOf } from './known-metrics.ts';
import { groupingLabels, selectorsOf } from './promql.ts';
import { alerts, knownSeries, PROMETHEUS_FOLDER, readYaml, rules } from './rules.ts';

const known = knownSeries();

describe('a name that is not known is found', () => {
  it.each([
    ['rate(svc_signing_request_total[5m])', 'unknown metric svc_signing_request_total'],
    ['svc_keys{state="active"} > 0', 'svc_keys: unknown label state'],
    ['svc_keys{status="activ"}', 'svc_keys: status is never activ'],
    [
      'svc_slashing_refusals_total{reason=~"double_.*|tripple_.*"}',
      'svc_slashing_refusals_total: reason is never tripple_.*',
    ],
    ['sum by (job, opration) (svc_signing_requests_total)', 'no metric in it has the label opration'],
    ['svc_signing_duration_seconds > 1', 'unknown metric svc_signing_duration_seconds'],
    ['1e3 > 2', 'no metric'],
  ])('%s', (expression, problem) => {
    expect(problemsOf(expression, known)).toEqual([problem]);
  });
});

describe('the rules', () => {
  it('name metrics, labels and values of the catalogues', () => {
    for (const { record, alert, expr } of rules) {
      expect({ rule: record ?? alert, problems: problemsOf(expr, known) }).toEqual({
        rule: record ?? alert,
        problems: [],
      });
    }
  });

  it('have alerts with names of their own, a severity, a summary and a page to read', () => {
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
    for (const { alert, labels, annotations } of alerts) {
      expect(alert).toMatch(/^Strongroom[A-Z]/);
      expect(labels?.['severity']).toMatch(/^(?:critical|warning|info)$/);
      expect(annotations?.['summary']).toMatch(/\S/);
      expect(annotations?.['description']).toMatch(/\.$/);
      // test/architecture/citations.test.ts follows it, anchor and all.
      expect(annotations?.['runbook_url']).toMatch(/^docs\/[\w/-]+\.md#[\w-]+$/);
    }
  });

  it('lead to the section of a runbook that names them, and each name there is an alert', () => {
    const RUNBOOKS = join(PROMETHEUS_FOLDER, '../../docs/runbooks');
    const sections = new Map<string, string>();
    for (const page of readdirSync(RUNBOOKS)) {
      const [, ...parts] = readFileSync(join(RUNBOOKS, page), 'utf8').split(/^<a id="(?=[^"]+"><\/a>$)/m);
      for (const part of parts) sections.set(`docs/runbooks/${page}#${part.split('"', 1)[0]}`, part);
    }
    const named = (url: string): string[] =>
      sections
        .get(url)
        ?.match(/`Strongroom[A-Z]\w+/g)
        ?.map(unquoted) ?? [];
    const lost = alerts.filter(
      ({ alert = '', annotations }) => !named(annotations?.['runbook_url'] ?? '').includes(alert),
    );
    expect(lost.map(({ alert, annotations }) => `${alert}: ${annotations?.['runbook_url']}`)).toEqual([]);
    const known = new Set(alerts.map(({ alert }) => alert));
    expect([...sections.keys()].flatMap(named).filter((name) => !known.has(name))).toEqual([]);
  });

  it('write labels into their annotations that their expression leaves', () => {
    for (const { alert, expr, annotations } of alerts) {
      const grouped = groupingLabels(expr);
      const left = expr.includes(' by (')
        ? grouped
        : selectorsOf(expr).flatMap(({ metric }) => [...(known.get(metric)?.keys() ?? [])]);
      const written = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
      expect({ alert, lost: written.filter((label) => !left.includes(label ?? '')) }).toEqual({ alert, lost: [] });
    }
  });

  it('use each recorded series, and the jobs of the example of a configuration', () => {
    const used = new Set(alerts.flatMap(({ expr }) => selectorsOf(expr).map(({ metric }) => metric)));
    expect(rules.flatMap(({ record }) => record ?? []).filter((record) => !used.has(record))).toEqual([]);
    const { scrape_configs, rule_files } = readYaml('prometheus.yaml') as {
      scrape_configs: { job_name: string }[];
      rule_files: string[];
    };
    expect(scrape_configs.map(({ job_name }) => job_name)).toEqual(JOBS);
    expect(rule_files).toEqual(['strongroom.rules.yaml']);
  });
});

const unquoted = (name: string): string => name.slice(1);

describe.skipIf(lacking('promtool'))('promtool', () => {
  it.each([
    ['takes the configuration and the rules', ['check', 'config', 'prometheus.yaml']],
    ['finds that the alerts fire when they should, and not before', ['test', 'rules', 'strongroom.tests.yaml']],
  ])('%s', (_, argv) => {
    const { status, stdout, stderr } = spawnSync('promtool', argv, { cwd: PROMETHEUS_FOLDER, encoding: 'utf8' });
    expect({ status, said: `${stdout}${stderr}` }).toMatchObject({ status: 0 });
  });
});
