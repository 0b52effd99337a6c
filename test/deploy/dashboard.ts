// The dashboard as tests read it: its panels, what each asks of Prometheus, and the expressions as Grafana fills them
// in.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Step {
  readonly color: string;
  readonly value: number | null;
}

export interface Field {
  readonly unit?: string;
  readonly noValue?: string;
  readonly color?: { readonly mode: string };
  readonly thresholds?: { readonly steps: readonly Step[] };
  readonly custom?: { readonly showPoints?: string; readonly thresholdsStyle?: { readonly mode: string } };
}

export interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
  readonly fieldConfig?: {
    readonly defaults: Field;
    readonly overrides: readonly {
      readonly matcher: { readonly id: string; readonly options: string };
      readonly properties: readonly { readonly id: string; readonly value: unknown }[];
    }[];
  };
  readonly transformations?: readonly {
    readonly id: string;
    readonly options: { readonly renameByName?: Readonly<Record<string, string>> };
  }[];
  readonly options?: { readonly legend?: { readonly placement: string } };
}

export const dashboard = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../deploy/grafana/strongroom.json'), 'utf8'),
) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
};
export const { panels } = dashboard;
export const drawn = panels.filter(({ type }) => type !== 'row');
export const queries = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));

export function filledIn(expression: string): string {
  return expression.replaceAll('$__rate_interval', '1m').replaceAll(/\$(?:instance|parent)/g, '.*');
}

export function labelsOf(legendFormat: string): string[] {
  return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].flatMap(([, label]) => label ?? []);
}
