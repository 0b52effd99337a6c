// A look at the fleet as text of at most so many columns: a line a replica, what needs attention, and the verdict last.
// Pure: what is shown is what was sampled.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import type { Paint, Tone } from '../../common/command-line/paint.ts';
import { printable } from '../../common/command-line/text.ts';
import { wrap } from '../../common/command-line/wrap.ts';
import { toMilli } from '../../common/observe/log.ts';
import type { ChamberStatus } from '../../signer/api/chamber.ts';
import type { KeysLoading } from '../../signer/api/health.ts';
import { CommandFailure, type OperatorExitCode } from '../exit.ts';
import { loadingText } from '../loading-text.ts';
import { sparkline, type Trends } from './history.ts';
import type { ReplicaSample } from './sample.ts';

export interface ReplicaView {
  readonly name: string;
  readonly state: 'up' | 'loading' | 'SEALED' | 'STALE' | 'DOWN' | 'away';
  readonly generation: number | null;
  readonly keys: number | null;
  /** How far the first load of its keys is; null when it has ended, or is not known. */
  readonly keysLoading: KeysLoading | null;
  readonly signedPerSecond: number | null;
  readonly p99Ms: number | null;
  readonly refusedPerSecond: number | null;
  readonly refusedMostly: string | null;
  /** Requests a second that ended with 4xx, by the scopes that their route asks for; without those that are 0. */
  readonly refusedByScope: Readonly<Record<string, number>>;
  /** PCR number → hex; empty outside an enclave, null when the status is not known. */
  readonly measurements: Readonly<Record<string, string>> | null;
  readonly version: string | null;
  readonly network: string | null;
  readonly store: string | null;
  readonly uptimeSeconds: number | null;
  readonly concerns: readonly string[];
}

export function viewOf({ name, health, status, counters, rates }: ReplicaSample): ReplicaView {
  const state = stateOf(health);
  const keys = status?.keys.reduce((sum, { count }) => sum + count, 0) ?? counters?.keys ?? null;
  return {
    name,
    state,
    generation: status?.custody?.generation ?? null,
    keys,
    keysLoading: loadingOf(health) ?? null,
    signedPerSecond: toMilli(rates?.signedPerSecond) ?? null,
    p99Ms: toMilli(rates?.p99Seconds === undefined ? undefined : rates.p99Seconds * 1000) ?? null,
    refusedPerSecond: toMilli(rates?.refusedPerSecond) ?? null,
    refusedMostly: rates?.mainReason ?? null,
    refusedByScope: Object.fromEntries(
      [...(rates?.refusedByScope ?? [])].map(([scope, rate]) => [scope, toMilli(rate)]),
    ),
    measurements: status?.tee.measurements ?? null,
    version: status?.version ?? null,
    network: status?.network ?? null,
    store: status === undefined ? null : storeText(status.slashing),
    uptimeSeconds: status?.uptime_seconds ?? null,
    concerns: [...concernsOf(health), ...(counters === undefined && state !== 'away' ? [NO_METRICS] : [])],
  };
}

const NO_METRICS = 'its metrics do not answer: say where they are with --metrics URL';

function storeText({ backend, status, bound }: ChamberStatus['slashing']): string {
  return `${backend}${status === 'up' ? '' : ` ${status}`}${bound === false ? ' UNBOUND' : ''}`;
}

function stateOf(health: ReplicaSample['health']): ReplicaView['state'] {
  if (health instanceof CommandFailure) return 'away';
  if (health.status === 'UP') return 'up';
  const isDown = (id: string): boolean => health.checks.some((check) => check.id === id && check.status === 'DOWN');
  if (health.checks.some(({ id, sealed_at }) => id === 'chamber' && sealed_at !== undefined)) return 'SEALED';
  if (isDown('state_watcher')) return 'STALE';
  const others = health.checks.filter(({ id, status }) => id !== 'keys' && status !== 'UP');
  return loadingOf(health) !== undefined && others.length === 0 ? 'loading' : 'DOWN';
}

function loadingOf(health: ReplicaSample['health']): KeysLoading | undefined {
  return health instanceof CommandFailure ? undefined : health.checks.find(({ id }) => id === 'keys')?.loading;
}

function concernsOf(health: ReplicaSample['health']): readonly string[] {
  if (health instanceof CommandFailure) return [health.message];
  const chamber = health.checks.find(({ id, sealed_at }) => id === 'chamber' && sealed_at !== undefined);
  if (chamber !== undefined) {
    return [`sealed at ${chamber.sealed_at ?? 'a time not recorded'}`];
  }
  return health.checks
    .filter(({ status }) => status !== 'UP')
    .map(({ id, detail, loading }) =>
      loading === undefined ? `${id}: ${detail ?? 'DOWN'}` : `keys are still being loaded: ${loadingText(loading)}`,
    );
}

export function differencesOf(views: readonly ReplicaView[]): readonly string[] {
  const shared: readonly (readonly [string, (view: ReplicaView) => string | null])[] = [
    ['networks', ({ network }) => network],
    ['versions', ({ version }) => version],
    ['ceremony generations', ({ generation }) => (generation === null ? null : String(generation))],
    ['PCR0', ({ measurements }) => measurements?.['0']?.slice(0, SHORT_DIGITS) ?? null],
    ['PCR16 (configuration)', ({ measurements }) => measurements?.['16']?.slice(0, SHORT_DIGITS) ?? null],
    ['slashing backends', ({ store }) => store?.split(' ')[0] ?? null],
  ];
  return shared.flatMap(([what, read]) => {
    const values = new Set(views.map(read).filter((value) => value !== null));
    return values.size < 2 ? [] : [`the replicas differ in their ${what}: ${[...values].join(', ')}`];
  });
}

/** 0 when all are up; 3 when one is sealed; 2 when one is away, stale or down. */
export function exitCodeOf(views: readonly ReplicaView[]): OperatorExitCode {
  if (views.every(({ state }) => state === 'up')) return EXIT.ok;
  return views.some(({ state }) => state === 'SEALED') ? EXIT.sealed : EXIT.refused;
}

const SHORT_DIGITS = 8;
const GAP = '  ';
const WIDE_COLUMNS = 110;
const MIN_NAME_COLUMNS = 8;

interface Column {
  readonly heading: string;
  readonly cell: (view: ReplicaView, at: number) => string;
  readonly isNumber?: boolean;
  readonly isWide?: boolean;
}

const COLUMNS: readonly Column[] = [
  { heading: 'STATE', cell: ({ state }) => state },
  { heading: 'GEN', cell: ({ generation }) => numberText(generation, 0), isNumber: true },
  { heading: 'KEYS', cell: keysText, isNumber: true },
  { heading: 'SIGN/S', cell: ({ signedPerSecond }) => numberText(signedPerSecond, 1), isNumber: true },
  { heading: 'P99 MS', cell: ({ p99Ms }) => numberText(p99Ms, 1), isNumber: true },
  { heading: 'REFUSE/S', cell: ({ refusedPerSecond }) => numberText(refusedPerSecond, 1), isNumber: true },
  { heading: 'PCR0', cell: ({ measurements }) => measurements?.['0']?.slice(0, SHORT_DIGITS) ?? '-' },
  { heading: 'STORE', cell: ({ store }) => store ?? '-', isWide: true },
  { heading: 'VERSION', cell: ({ version }) => version ?? '-', isWide: true },
  { heading: 'UP', cell: ({ uptimeSeconds }) => durationText(uptimeSeconds), isNumber: true, isWide: true },
  { heading: 'REFUSED MOSTLY', cell: ({ refusedMostly }) => refusedMostly ?? '-', isWide: true },
];

export interface Frame {
  readonly columns: number;
  readonly rows: number;
  readonly paint: Paint;
  readonly title: string;
  readonly trends?: Trends | undefined;
}

export function renderFleet(views: readonly ReplicaView[], frame: Frame): string[] {
  const table = tableOf(views, frame);
  const attention = attentionTo(views).flatMap(({ text, tone }) =>
    wrap(`! ${printable(text)}`, frame.columns - INDENT.length).map((one, at) =>
      at === 0 ? { text: one, mark: { at: 0, length: 1, tone } } : { text: `${INDENT}${one}` },
    ),
  );
  const concerns = bounded(attention, Math.max(1, Math.floor(frame.rows / 2)));
  const rates = [...refusalLines(views), ...trendLines(frame)].map((text) => cut(text, frame.columns));
  const fixed = FIXED_LINES + rates.length + (concerns.length === 0 ? 0 : concerns.length + 1);
  const replicas = bounded(table.lines, Math.max(2, frame.rows - fixed));
  const painted = (line: Line): string => paintMark(line, frame);
  return [
    cut(frame.title, frame.columns),
    '',
    table.heading,
    ...replicas.map(painted),
    ...(concerns.length === 0 ? [] : ['', ...concerns.map(painted)]),
    '',
    ...rates,
    painted(verdictLine(views)),
  ];
}

interface Line {
  readonly text: string;
  readonly mark?: { readonly at: number; readonly length: number; readonly tone: Tone };
}

function paintMark({ text, mark }: Line, { paint, columns }: Frame): string {
  const shown = cut(text, columns);
  if (mark === undefined) return shown;
  const end = mark.at + mark.length;
  return `${shown.slice(0, mark.at)}${paint(shown.slice(mark.at, end), mark.tone)}${shown.slice(end)}`;
}

/** A line a replica, the worst first: of more than the terminal has lines, these are seen. */
function tableOf(
  views: readonly ReplicaView[],
  frame: Frame,
): { readonly heading: string; readonly lines: readonly Line[] } {
  const columns = columnsOf(views, frame);
  const cells = views.map((view, at) => columns.map(({ cell }) => printable(cell(view, at))));
  const widths = columns.map(({ heading }, at) =>
    Math.max(heading.length, ...cells.map((row) => row[at]?.length ?? 0)),
  );
  const others = widths.reduce((sum, width) => sum + GAP.length + width, 0);
  const longest = Math.max(MIN_NAME_COLUMNS, ...views.map(({ name }) => name.length));
  const nameColumns = Math.max(MIN_NAME_COLUMNS, Math.min(longest, frame.columns - others));
  const line = (name: string, row: readonly string[]): string =>
    [cut(name, nameColumns).padEnd(nameColumns), ...row.map((cell, at) => align(cell, widths[at] ?? 0, columns[at]))]
      .join(GAP)
      .trimEnd();
  const headings = columns.map(({ heading }) => heading);
  const ordered = [...views.keys()].sort(
    (one, other) => badnessOf(views[other]) - badnessOf(views[one]) || one - other,
  );
  const lines = ordered.flatMap((at) => {
    const view = views[at];
    if (view === undefined) return [];
    const mark = { at: nameColumns + GAP.length, length: view.state.length, tone: toneOf(view) };
    return [{ text: line(view.name, cells[at] ?? []), mark }];
  });
  return { heading: cut(line('REPLICA', headings), frame.columns), lines };
}

function columnsOf(views: readonly ReplicaView[], { columns, trends }: Frame): readonly Column[] {
  const isWide = columns >= WIDE_COLUMNS;
  const shown = COLUMNS.filter((column) => column.isWide !== true || isWide);
  const histories = trends?.replicas ?? [];
  if (!isWide || views.length < 2 || histories.every((values) => values.length < 2)) return shown;
  const trend: Column = { heading: 'SIGN/S SO FAR', cell: (_, at) => sparkline(histories[at] ?? [], TREND_COLUMNS) };
  return [...shown, trend];
}

const BADNESS: Readonly<Record<ReplicaView['state'], number>> = {
  SEALED: 6,
  away: 5,
  DOWN: 4,
  STALE: 3,
  loading: 2,
  up: 0,
};

function badnessOf(view: ReplicaView | undefined): number {
  if (view === undefined) return 0;
  return view.state === 'up' && view.concerns.length > 0 ? 1 : BADNESS[view.state];
}

/** The most refused scopes, of all replicas together. */
function refusalLines(views: readonly ReplicaView[]): readonly string[] {
  const sums = new Map<string, number>();
  for (const { refusedByScope } of views) {
    for (const [scope, rate] of Object.entries(refusedByScope)) sums.set(scope, (sums.get(scope) ?? 0) + rate);
  }
  const said = [...sums]
    .sort(([, one], [, other]) => other - one)
    .map(([scope, rate]) => `${printable(scope)} ${numberText(rate, 1)}/s`);
  return said.length === 0 ? [] : [`${'refused'.padEnd(LABEL_COLUMNS)}${said.join(', ')}`];
}

/** Where rate and p99 come from; they need a second look. */
function trendLines({ trends, columns }: Frame): readonly string[] {
  if (trends === undefined || trends.fleet.signedPerSecond.length < 2) return [];
  const { signedPerSecond, p99Ms } = trends.fleet;
  if (signedPerSecond.every((value) => value === null)) return []; // no metrics: the note of the replica says it
  const line = (label: string, values: readonly (number | null)[]): string => {
    const known = values.filter((value) => value !== null);
    const highest = known.length === 0 ? '' : `  at most ${numberText(Math.max(...known), 1)}`;
    const room = Math.max(1, columns - LABEL_COLUMNS - MAX_HIGHEST_COLUMNS);
    return `${label.padEnd(LABEL_COLUMNS)}${sparkline(values, room)}${highest}`;
  };
  return [line('sign/s', signedPerSecond), line('p99 ms', p99Ms)];
}

/** What is said of a replica that is up is a doubt; what keeps one from signing, or sets it apart, is a fault. */
function attentionTo(views: readonly ReplicaView[]): readonly { readonly text: string; readonly tone: Tone }[] {
  return [
    ...views.flatMap((view) => view.concerns.map((text) => ({ text: `${view.name}: ${text}`, tone: toneOf(view) }))),
    ...differencesOf(views).map((text) => ({ text, tone: 'bad' as const })),
  ];
}

const INDENT = '  ';
const LABEL_COLUMNS = 9;
const TREND_COLUMNS = 20;
const MAX_HIGHEST_COLUMNS = 18;

const FIXED_LINES = 5;

/** The first of them, and how many more there are, in so many lines. */
function bounded(lines: readonly Line[], maxLines: number): readonly Line[] {
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, maxLines - 1), { text: `and ${lines.length - maxLines + 1} more` }];
}

function verdictLine(views: readonly ReplicaView[]): Line {
  const up = views.filter(({ state }) => state === 'up').length;
  const verdict = `${up} of ${views.length} up`;
  const mark = { at: 0, length: verdict.length, tone: up === views.length ? 'good' : 'bad' } as const;
  return { text: `${verdict}, ${rateText(views)}`, mark };
}

/** A replica whose metrics were not seen may sign all the same. */
function rateText(views: readonly ReplicaView[]): string {
  const rates = views.map(({ signedPerSecond }) => signedPerSecond).filter((rate) => rate !== null);
  if (rates.length === 0) return 'signatures a second not known';
  const unknown = views.length - rates.length;
  const total = rates.reduce((sum, rate) => sum + rate, 0);
  return `${numberText(total, 1)} signatures a second${unknown === 0 ? '' : `, of ${unknown} not known`}`;
}

function keysText({ keys, keysLoading }: ReplicaView): string {
  if (keysLoading === null || keysLoading.total === null) return numberText(keys, 0);
  return `${keysLoading.done}/${keysLoading.total}`;
}

function toneOf({ state, concerns }: ReplicaView): Tone {
  if (state === 'loading') return 'doubtful';
  if (state !== 'up') return 'bad';
  return concerns.length === 0 ? 'good' : 'doubtful';
}

function align(cell: string, width: number, column: Column | undefined): string {
  return column?.isNumber === true ? cell.padStart(width) : cell.padEnd(width);
}

function cut(text: string, columns: number): string {
  const shown = printable(text);
  return shown.length <= columns ? shown : `${shown.slice(0, Math.max(0, columns - 1))}…`;
}

function numberText(value: number | null, decimals: number): string {
  return value === null ? '-' : value.toFixed(decimals);
}

function durationText(seconds: number | null): string {
  if (seconds === null) return '-';
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
