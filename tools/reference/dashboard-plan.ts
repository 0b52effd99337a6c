// The plan of the dashboard (deploy/grafana): where each panel is, what it shows and in which unit, as a drawing. It is
// no picture of Grafana, which nobody has run here: it has no figures.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { wrap } from '../../common/command-line/wrap.ts';
import { type Html, html } from '../../common/formats/html.ts';

const FILE = join(import.meta.dirname, '../../deploy/grafana/strongroom.json');
const CELL = { width: 42, height: 11 };
const GAP = 3;
const MARGIN = 12;
const COLUMNS = 24;
/** Of what a panel says of itself: at this size, below title and kind. */
const SAID = { above: 44, lineHeight: 13, characterWidth: 5.6 };

const dashboardSchema = z.object({
  title: z.string(),
  panels: z.array(
    z.object({
      type: z.string(),
      title: z.string(),
      description: z.string().optional(),
      gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
      fieldConfig: z.object({ defaults: z.object({ unit: z.string().optional() }) }).optional(),
    }),
  ),
});
type Panel = z.infer<typeof dashboardSchema>['panels'][number];

const KINDS: Readonly<Record<string, string>> = {
  stat: 'number',
  timeseries: 'graph',
  'state-timeline': 'states over time',
  table: 'table',
};
/** By Grafana's names. */
const UNITS: Readonly<Record<string, string>> = {
  percentunit: '%',
  ops: 'a second',
  reqps: 'requests a second',
  cpm: 'a minute',
  s: 'seconds',
  bytes: 'bytes',
  Bps: 'bytes a second',
  'suffix:cores': 'cores',
};

export function dashboardPlan(): string {
  const { title, panels } = dashboardSchema.parse(JSON.parse(readFileSync(FILE, 'utf8')));
  const width = COLUMNS * CELL.width + 2 * MARGIN;
  const height = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h)) * CELL.height + 2 * MARGIN;
  return `${html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"
 font-family="system-ui, 'DejaVu Sans', Arial, sans-serif">
<title>The plan of the dashboard ${title}</title>
<rect width="${width}" height="${height}" rx="8" fill="#f4f5f7"/>
${panels.map((panel) => (panel.type === 'row' ? heading(panel) : box(panel)))}</svg>`}\n`;
}

function heading({ title, gridPos: { y } }: Panel): Html {
  const at = MARGIN + y * CELL.height + 9;
  return html`<text x="${MARGIN}" y="${at}" font-size="11" font-weight="700" fill="#1f2430">${title}</text>\n`;
}

function box({ type, title, description, gridPos, fieldConfig }: Panel): Html {
  const [x, y] = [MARGIN + gridPos.x * CELL.width, MARGIN + gridPos.y * CELL.height];
  const [width, height] = [gridPos.w * CELL.width - GAP, gridPos.h * CELL.height - GAP];
  const words = [nameOf(KINDS, type), nameOf(UNITS, fieldConfig?.defaults.unit)].filter((word) => word !== undefined);
  return html`<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="3" fill="#fff" stroke="#c3c8d1"/>
<text x="${x + 7}" y="${y + 15}" font-size="11" font-weight="600" fill="#1f2430">${title}</text>
<text x="${x + 7}" y="${y + 29}" font-size="10" fill="#5b6473">${words.join(', ')}</text>
${saidIn(description, width, height).map(
  (line, at) =>
    html`<text x="${x + 7}" y="${y + SAID.above + at * SAID.lineHeight}" font-size="10" fill="#1f2430">${line}</text>\n`,
)}`;
}

/** As many whole sentences as have room. */
function saidIn(description = '', width: number, height: number): readonly string[] {
  const sentences = description.split(/(?<=[.]) /);
  const columns = Math.floor((width - 14) / SAID.characterWidth);
  const texts = sentences.map((_, at) => wrap(sentences.slice(0, at + 1).join(' '), columns, 'whole words'));
  return texts.findLast((lines) => SAID.above + (lines.length - 1) * SAID.lineHeight <= height - GAP - 4) ?? [];
}

/** @throws Error about a kind or a unit that has no name here */
function nameOf(names: Readonly<Record<string, string>>, word: string | undefined): string | undefined {
  if (word === undefined || word === 'none') return undefined;
  const name = names[word];
  if (name === undefined) throw new Error(`the plan of the dashboard has no name for ${word}`);
  return name;
}
