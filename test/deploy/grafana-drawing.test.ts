// What somebody sees who looks at the dashboard at night: each case is a mistake that was seen when its panels were
// drawn. Numbers without a unit, titles that are cut off, legends that do not fit, zeros for what is not known, a
// colour that means nothing, rows of one replica that do not meet. Grafana itself is not run here.

import { describe, expect, it } from 'vitest';
import { drawn, filledIn, labelsOf, type Panel, type Step } from './dashboard.ts';
import { groupingLabels, selectorsOf } from './promql.ts';
import { alerts, knownSeries } from './rules.ts';

/** Letters for each of the 24 columns of a screen 1600 pixels wide, beside the mark of a description. */
const TITLE_LETTERS_A_COLUMN = 6;
/** What a list below a panel holds, in a third of its height. */
const MAX_LEGEND_SERIES = 8;

const known = knownSeries();
const timeSeries = drawn.filter(({ type }) => type === 'timeseries');
const defaultsOf = ({ fieldConfig }: Panel) => fieldConfig?.defaults ?? {};

function unitsOf(expression: string): string[] {
  if (/histogram_quantile\(|time\(\)/.test(expression)) return ['s'];
  if (expression.includes('60 * rate(')) return ['cpm'];
  if (expression.startsWith('rate(svc_process_cpu_seconds_total')) return ['suffix:cores'];
  if (expression.includes('_bytes_total')) return ['Bps'];
  if (/rate\(.*\) \/ .*rate\(/.test(expression)) return ['percentunit', 'none'];
  if (/\brate\(/.test(expression)) return ['ops', 'reqps'];
  if (/_seconds\{/.test(expression)) return ['s'];
  if (/_bytes\{/.test(expression)) return ['bytes'];
  return ['none'];
}

/** How many series a query can draw for one replica, as far as the catalogues tell. */
function seriesOf({ expr, legendFormat }: { readonly expr: string; readonly legendFormat: string }): number {
  const metrics = selectorsOf(filledIn(expr)).map(({ metric }) => known.get(metric));
  const values = labelsOf(legendFormat).map((label) => metrics.find((labels) => labels?.has(label))?.get(label));
  return values.reduce((product, each) => product * (each?.length ?? 1), 1);
}

/** What an override by name can be for: a column, a legend, or a value of the label that is the legend. */
function namesOf({ targets = [], transformations = [] }: Panel): string[] {
  const columns = transformations.flatMap(({ options }) => Object.values(options.renameByName ?? {}));
  const legends = targets.flatMap(({ expr, legendFormat }) => [
    legendFormat,
    ...(transformations.length > 0 ? groupingLabels(expr) : []),
    ...selectorsOf(filledIn(expr)).flatMap(({ metric }) =>
      labelsOf(legendFormat).flatMap((label) => known.get(metric)?.get(label) ?? []),
    ),
  ]);
  return [...columns, ...legends];
}

describe('a panel', () => {
  it('has a title that fits, says what it shows, and what it means to be empty', () => {
    for (const panel of drawn) {
      const { title, description, gridPos } = panel;
      expect({ title, letters: title.length <= gridPos.w * TITLE_LETTERS_A_COLUMN }).toEqual({ title, letters: true });
      expect({ title, description }).toEqual({ title, description: expect.stringMatching(/\S.*/) });
      if (panel.type !== 'table')
        expect({ title, noValue: defaultsOf(panel).noValue }).toEqual({ title, noValue: expect.any(String) });
    }
  });

  it('has the unit of what it shows, and never two', () => {
    const single = drawn.filter(({ type }) => type !== 'table');
    expect(single.length).toBeGreaterThan(30);
    for (const { title, fieldConfig, targets = [] } of single) {
      const unfit = targets.filter(({ expr }) => !unitsOf(expr).includes(fieldConfig?.defaults.unit ?? ''));
      expect({ title, unit: fieldConfig?.defaults.unit, unfit }).toMatchObject({ title, unfit: [] });
    }
  });

  it('shows no zero for what is not known', () => {
    const invented = drawn.flatMap(({ targets = [] }) => targets.filter(({ expr }) => expr.includes('vector(')));
    expect(invented).toEqual([]);
  });

  it('of one number is not green while it has none: Grafana gives that the first colour', () => {
    const stats = drawn.filter(({ type }) => type === 'stat');
    const first = stats.flatMap((panel) => [
      { title: panel.title, steps: defaultsOf(panel).thresholds?.steps },
      ...(panel.fieldConfig?.overrides ?? []).flatMap(({ properties }) =>
        properties
          .filter(({ id }) => id === 'thresholds')
          .map(({ value }) => ({ title: panel.title, steps: (value as { readonly steps: readonly Step[] }).steps })),
      ),
    ]);
    expect(first.filter(({ steps }) => steps?.[0]?.color === 'green')).toEqual([]);
  });

  it('changes by name what it has', () => {
    for (const panel of drawn) {
      const wanted = (panel.fieldConfig?.overrides ?? []).map(({ matcher }) => matcher.options);
      const names = namesOf(panel);
      const lost = wanted.filter((name) => !names.includes(name));
      expect({ title: panel.title, lost }).toEqual({ title: panel.title, lost: [] });
    }
  });

  it('of one number has a colour that means something: Grafana’s own turns red at 80 of anything', () => {
    const plain = drawn
      .filter(({ type }) => type === 'stat')
      .filter((panel) => {
        const { thresholds, color } = defaultsOf(panel);
        return thresholds === undefined && color?.mode !== 'fixed';
      });
    expect(plain.map(({ title }) => title)).toEqual([]);
  });
});

describe('a graph', () => {
  it('has a legend that fits: beside it, or without the series that are zero', () => {
    for (const { title, targets = [], options } of timeSeries) {
      if (options?.legend?.placement === 'right') continue;
      const crowd = targets.filter((target) => seriesOf(target) > MAX_LEGEND_SERIES && !target.expr.includes(' > 0'));
      expect({ title, crowd }).toEqual({ title, crowd: [] });
    }
  });

  it('draws a single point, which is all that one refusal leaves', () => {
    const hidden = timeSeries.filter((panel) => defaultsOf(panel).custom?.showPoints === 'never');
    expect(hidden.map(({ title }) => title)).toEqual([]);
  });

  it('counts the first refusal of its kind: that makes the series, so that `rate` sees nothing of it', () => {
    const refusals = timeSeries
      .flatMap(({ targets = [] }) => targets)
      .filter(({ expr }) => expr.includes('svc_signing_requests_total') && expr.includes('outcome!="signed"'));
    expect(refusals.length).toBeGreaterThan(1);
    const blind = refusals.filter(({ expr }) => !expr.includes('unless svc_signing_requests_total offset'));
    expect(blind).toEqual([]);
  });

  it('has its line, or turns red, where the alert fires that it names', () => {
    const bounds = new Map(alerts.map(({ alert = '', expr }) => [alert, boundsOf(expr)]));
    let compared = 0;
    for (const panel of drawn) {
      const { title, description = '' } = panel;
      const named = description.match(/Strongroom[A-Z]\w+/g) ?? [];
      expect({ title, lost: named.filter((name) => !bounds.has(name)) }).toEqual({ title, lost: [] });
      const { custom, thresholds } = defaultsOf(panel);
      const [, alert] = /where (Strongroom\w+) fires/.exec(description) ?? [];
      const hasLine = custom?.thresholdsStyle?.mode === 'line';
      if (alert === undefined && !hasLine) continue;
      compared += 1;
      // A line has a colour on one side of it, and none on the other.
      const turns = (thresholds?.steps ?? []).filter(
        ({ color, value }) => value !== null && ['red', 'transparent'].includes(color),
      );
      const at = [...new Set(turns.map(({ value }) => Math.abs(value ?? 0)))];
      expect({ title, at }).toEqual({ title, at: (bounds.get(alert ?? '') ?? []).slice(0, 1) });
    }
    expect(compared).toBeGreaterThan(6);
  });
});

function boundsOf(expression: string): number[] {
  return [...expression.matchAll(/[<>] (\d[\d.]*)(?: \* (\d+))?/g)].map(
    ([, number, times = '1']) => Number(number) * Number(times),
  );
}

describe('a table of several queries', () => {
  it('has a row a replica: Grafana merges rows only when each label that they share is equal', () => {
    const merged = drawn.filter(({ transformations = [] }) => transformations.some(({ id }) => id === 'merge'));
    expect(merged.length).toBeGreaterThan(0);
    for (const { title, targets = [] } of merged) {
      const apart = targets.filter(({ expr }) => !/^(?:max|min|sum) by \(instance\) \(.*\)$/.test(expr));
      expect({ title, apart }).toEqual({ title, apart: [] });
    }
  });
});
