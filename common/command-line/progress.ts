// How far long work is, on stderr: on a terminal one line that is written again in place, gone when the work ends; in a
// pipe or a file a line each ten seconds. Nothing below two seconds. It decides nothing, and costs next to nothing.

import { columnsOf, type Shown } from './wrap.ts';

export interface Work {
  readonly doing: string;
  readonly unit?: string;
  readonly total?: number;
}

export interface Progress {
  reach(done: number): void;
  /** What is under way now, where work has several parts; it is counted from zero. */
  begin(work: Work): void;
  /** Takes the line away, so that others can be written. */
  [Symbol.dispose](): void;
}

interface ProgressPlace {
  readonly stderr: Shown & { write(text: string): unknown };
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface ProgressClock {
  now(): number;
  every(milliseconds: number, run: () => void): () => void;
}

const SILENT_MS = 2_000;
const FRAME_MS = 200;
const PIPE_MS = 10_000;
const MAX_BAR_COLUMNS = 20;
const MIN_BAR_COLUMNS = 5;
const CLEAR_LINE = '\r\u001B[K';

export const NO_PROGRESS: Progress = {
  reach: () => undefined,
  begin: () => undefined,
  [Symbol.dispose]: () => undefined,
};

export function showProgress(
  { stderr, env = {} }: ProgressPlace,
  first: Work,
  beat: ProgressClock = REAL_BEAT,
): Progress {
  const inPlace = stderr.isTTY === true && env['TERM'] !== 'dumb';
  let work = first;
  let done = 0;
  let began = beat.now();
  let due = began + (inPlace ? SILENT_MS : PIPE_MS);
  let shown = '';
  const look = (): void => {
    const now = beat.now();
    if (now < due) return;
    due = now + (inPlace ? FRAME_MS : PIPE_MS);
    const columns = inPlace ? columnsOf(stderr) - 1 : Number.POSITIVE_INFINITY;
    const line = progressLine(work, { done, seconds: (now - began) / 1000 }, columns);
    if (line === shown) return;
    shown = line;
    stderr.write(inPlace ? `${CLEAR_LINE}${line}` : `${line}\n`);
  };
  const stop = beat.every(FRAME_MS, look);
  return {
    reach(count) {
      done = count;
      look(); // a loop that leaves no time for timers shows it, too
    },
    begin(next) {
      work = next;
      done = 0;
      began = beat.now();
      look();
    },
    [Symbol.dispose]() {
      stop();
      if (inPlace && shown !== '') stderr.write(CLEAR_LINE);
      shown = '';
      due = Number.POSITIVE_INFINITY;
    },
  };
}

const REAL_BEAT: ProgressClock = {
  now: () => performance.now(),
  every(milliseconds, run) {
    const timer = setInterval(run, milliseconds);
    timer.unref();
    return () => clearInterval(timer);
  },
};

export function progressLine(
  { doing, unit, total }: Work,
  { done, seconds }: { readonly done: number; readonly seconds: number },
  columns = Number.POSITIVE_INFINITY,
): string {
  if (unit === undefined) return cut(`${doing}, ${durationText(seconds)}`, columns);
  const perSecond = seconds > 0 ? done / seconds : 0;
  if (total === undefined)
    return cut(`${doing} ${groupedThousands(done)} ${unit} so far${rateText(perSecond)}`, columns);
  const left = Math.max(0, total - done);
  const ending = perSecond === 0 ? `, ${durationText(seconds)}` : `, ${durationText(left / perSecond)} left`;
  const count = `${groupedThousands(done)} of ${groupedThousands(total)} ${unit}${rateText(perSecond)}${left === 0 ? '' : ending}`;
  const room = Math.min(MAX_BAR_COLUMNS, columns - doing.length - count.length - 2);
  const parts = [doing, ...(room < MIN_BAR_COLUMNS ? [] : [bar(total === 0 ? 1 : done / total, room)]), count];
  return cut(parts.join(' '), columns);
}

function bar(share: number, columns: number): string {
  const full = Math.min(columns, Math.max(0, Math.floor(share * columns)));
  return '█'.repeat(full) + '░'.repeat(columns - full);
}

function rateText(perSecond: number): string {
  if (perSecond < 0.05) return '';
  return `, ${perSecond < 10 ? perSecond.toFixed(1) : groupedThousands(perSecond)}/s`;
}

/** As people read a time that is estimated: at most two units. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 120) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function groupedThousands(count: number): string {
  return String(Math.round(count)).replaceAll(/\B(?=(\d{3})+$)/g, ',');
}

function cut(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`;
}
