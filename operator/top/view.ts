// A look at the fleet as text of at most so many columns: a line a replica, what needs attention, and the verdict last.
// Pure: what is shown is what was sampled.

import type { Paint, Tone } from '../../command-line/color.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { printable } from '../../command-line/text.ts';
import { wrap } from '../../command-line/wrap.ts';
import type { ChamberStatus } from '../../enclave/api/chamber.ts';
import { toMilli } from '../../observe/log.ts';
import { CommandFailure, type OperatorExitCode } from '../exit.ts';
import type { Sample } from './sample.ts';

export interface ReplicaView {
  readonly name: string;
  readonly state: 'up' | 'SEALED' | 'STALE' | 'DOWN' | 'away';
  readonly generation: number | null;
  readonly keys: number | null;
  readonly signedPerSecond: number | null;
  readonly p99Ms: number | null;
  readonly refusedPerSecond: number | null;
  readonly refusedMostly: string | null;
  /** PCR number → hex; empty outside an enclave, null when the status is not known. */
  readonly measurements: Readonly<Record<string, string>> | null;
  readonly version: string | null;
  readonly network: string | null;
  readonly store: string | null;
  readonly uptimeSeconds: number | null;
  /** What is wrong with it. */
  readonly concerns: readonly string[];
}

export function viewOf({ name, health, status, counters, rates }: Sample): ReplicaView {
  const state = stateOf(health);
  const keys = status?.keys.reduce((sum, { count }) => sum + count, 0) ?? counters?.keys ?? null;
  return {
    name,
    state,
    generation: status?.custody?.generation ?? null,
    keys,
    signedPerSecond: toMilli(rates?.signedPerSecond) ?? null,
    p99Ms: toMilli(rates?.p99Seconds === undefined ? undefined : rates.p99Seconds * 1000) ?? null,
    refusedPerSecond: toMilli(rates?.refusedPerSecond) ?? null,
    refusedMostly: rates?.mainReason ?? null,
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

function stateOf(health: Sample['health']): ReplicaView['state'] {
  if (health instanceof CommandFailure) return 'away';
  if (health.status === 'UP') return 'up';
  const isDown = (id: string): boolean => health.checks.some((check) => check.id === id && check.status === 'DOWN');
  if (health.checks.some(({ id, sealed_at }) => id === 'chamber' && sealed_at !== undefined)) return 'SEALED';
  return isDown('state_watcher') ? 'STALE' : 'DOWN';
}

function concernsOf(health: Sample['health']): readonly string[] {
  if (health instanceof CommandFailure) return [health.message];
  const chamber = health.checks.find(({ id, sealed_at }) => id === 'chamber' && sealed_at !== undefined);
  if (chamber !== undefined) {
    return [`sealed at ${chamber.sealed_at ?? 'a time not recorded'}: ${chamber.reason ?? 'no reason given'}`];
  }
  return health.checks.filter(({ status }) => status !== 'UP').map(({ id, detail }) => `${id}: ${detail ?? 'DOWN'}`);
}

/** What the replicas of a fleet should have in common. */
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
  readonly cell: (view: ReplicaView) => string;
  readonly isNumber?: boolean;
  /** Only where the terminal has room. */
  readonly isWide?: boolean;
}

const COLUMNS: readonly Column[] = [
  { heading: 'STATE', cell: ({ state }) => state },
  { heading: 'GEN', cell: ({ generation }) => numberText(generation, 0), isNumber: true },
  { heading: 'KEYS', cell: ({ keys }) => numberText(keys, 0), isNumber: true },
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
  /** Lines at most; what does not fit is counted. */
  readonly rows: number;
  readonly paint: Paint;
  /** What the first line says: when, and how often. */
  readonly title: string;
}

export function renderFleet(views: readonly ReplicaView[], frame: Frame): string[] {
  const columns = COLUMNS.filter(({ isWide }) => isWide !== true || frame.columns >= WIDE_COLUMNS);
  const cells = views.map((view) => columns.map(({ cell }) => printable(cell(view))));
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
  const heading = line(
    'REPLICA',
    columns.map((column) => column.heading),
  );
  const body = views.map((view, at) => ({ text: line(view.name, cells[at] ?? []), tone: toneOf(view) }));
  const attention = attentionTo(views).flatMap(({ text, tone }) => {
    const lines = wrap(`! ${printable(text)}`, frame.columns - INDENT.length);
    return lines.map((one, at) => ({ text: indentRest(one, at), tone }));
  });
  const concerns = bounded(attention, Math.max(1, Math.floor(frame.rows / 2)), (text) => ({ text, tone: 'bad' }));
  const fixed = FIXED_LINES + (concerns.length === 0 ? 0 : concerns.length + 1);
  const replicas = bounded(body, Math.max(2, frame.rows - fixed), (text) => ({ text, tone: 'doubtful' }) as const);
  return [
    cut(frame.title, frame.columns),
    '',
    cut(heading, frame.columns),
    ...replicas.map(({ text, tone }) => frame.paint(cut(text, frame.columns), tone)),
    ...(concerns.length === 0 ? [] : ['', ...concerns.map(({ text, tone }) => frame.paint(text, tone))]),
    '',
    verdictLine(views, frame),
  ];
}

interface Line {
  readonly text: string;
  readonly tone: Tone;
}

/** What is said of a replica that is up is a doubt; what keeps one from signing, or sets it apart, is a fault. */
function attentionTo(views: readonly ReplicaView[]): readonly Line[] {
  return [
    ...views.flatMap((view) => view.concerns.map((text) => ({ text: `${view.name}: ${text}`, tone: toneOf(view) }))),
    ...differencesOf(views).map((text) => ({ text, tone: 'bad' as const })),
  ];
}

const INDENT = '  ';

function indentRest(line: string, at: number): string {
  return at === 0 ? line : `${INDENT}${line}`;
}

/** Title, headings and verdict, with the empty lines between. */
const FIXED_LINES = 5;

/** The first of them, and how many more there are, in so many lines. */
function bounded(lines: readonly Line[], maxLines: number, rest: (text: string) => Line): readonly Line[] {
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, maxLines - 1), rest(`and ${lines.length - maxLines + 1} more`)];
}

function verdictLine(views: readonly ReplicaView[], { paint }: Frame): string {
  const up = views.filter(({ state }) => state === 'up').length;
  return paint(`${up} of ${views.length} up, ${rateText(views)}`, up === views.length ? 'good' : 'bad');
}

/** A replica whose metrics were not seen may sign all the same. */
function rateText(views: readonly ReplicaView[]): string {
  const rates = views.map(({ signedPerSecond }) => signedPerSecond).filter((rate) => rate !== null);
  if (rates.length === 0) return 'signatures a second not known';
  const unknown = views.length - rates.length;
  const total = rates.reduce((sum, rate) => sum + rate, 0);
  return `${numberText(total, 1)} signatures a second${unknown === 0 ? '' : `, of ${unknown} not known`}`;
}

function toneOf({ state, concerns }: ReplicaView): Tone {
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

/** The larger unit alone. */
function durationText(seconds: number | null): string {
  if (seconds === null) return '-';
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
