// The dashboard: every query names metrics, labels and values of the catalogues and parses as PromQL, every legend a
// label that its query leaves, and no two panels lie on each other. Grafana itself is not run here.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { lacking } from '../support/needs.ts';
import { dashboard, filledIn, labelsOf, panels, queries } from './dashboard.ts';
import { problemsOf } from './known-metrics.ts';
import { groupingLabels, selectorsOf } from './promql.ts';
import { knownSeries } from './rules.ts';

const known = knownSeries();

describe('the dashboard', () => {
  it('asks for metrics, labels and values of the catalogues', () => {
    expect(queries.length).toBeGreaterThan(40);
    for (const { title, expr } of queries) {
      const problems = problemsOf(filledIn(expr), known);
      expect({ title, expr, problems }).toEqual({ title, expr, problems: [] });
    }
    for (const { name, expr } of dashboard.annotations.list)
      expect({ name, problems: problemsOf(expr, known) }).toEqual({ name, problems: [] });
  });

  it('names its series by labels that the query leaves', () => {
    for (const { title, expr, legendFormat } of queries) {
      const labels = / by \(/.test(expr)
        ? groupingLabels(expr)
        : selectorsOf(filledIn(expr)).flatMap(({ metric }) => [...(known.get(metric)?.keys() ?? [])]);
      const lost = labelsOf(legendFormat).filter((label) => !labels.includes(label));
      expect({ title, legendFormat, lost }).toEqual({ title, legendFormat, lost: [] });
    }
  });

  it('uses no variable but its own, and those of Grafana', () => {
    const own = dashboard.templating.list.map(({ name }) => name);
    const used = [...JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)].map(([, name = '']) => name);
    expect([...new Set(used)].filter((name) => !own.includes(name) && name !== '__rate_interval')).toEqual([]);
  });

  it('shows each panel in a place of its own, with a title and an id of its own', () => {
    for (const key of ['id', 'title'] as const)
      expect(new Set(panels.map((panel) => panel[key])).size).toBe(panels.length);
    const places = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24);
      return Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`);
    });
    expect(new Set(places).size).toBe(places.length);
  });

  it.skipIf(lacking('promtool'))('asks in PromQL that promtool takes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-dashboard-'));
    const rules = queries.map(({ expr }, index) => ({ record: `query:${index}`, expr: filledIn(expr) }));
    writeFileSync(join(folder, 'rules.yaml'), stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { status, stdout, stderr } = spawnSync(
      'promtool',
      ['check', 'rules', '--lint=none', join(folder, 'rules.yaml')],
      {
        encoding: 'utf8',
      },
    );
    rmSync(folder, { recursive: true });
    expect({ status, said: `${stdout}${stderr}` }).toMatchObject({ status: 0 });
  });
});
