// Whether memory is flat. Resident memory is a sawtooth: it grows until V8 collects, and what is collected is not given
// back at once. What counts is its floor, the lowest of each of eight parts of the last two thirds, and how this floor
// rises in an hour. It is flat when the rise, with the error of its estimate, stays below a quarter of a megabyte a
// minute; when the error is too large for that, the run was too short to say. What is alive after a full collection may
// not grow either. A leak of a megabyte a minute is never called flat, in the heap or outside of it.

/** Of a leak of 1 MB a minute the quarter. */
const FLAT_MB_PER_HOUR = 15;
/** What is alive differs by so much from one collection to the next. */
const ALIVE_NOISE_MB = 2;
const ALIVE_SHARE = 0.1;
const PARTS = 8;
/** Student's t, two-sided 95 %, of a line through so many points. */
const STUDENT_T = 2.447;

export type Verdict = 'flat' | 'RISES' | 'UNDECIDED';

export interface Floor {
  readonly verdict: Verdict;
  readonly perHour: number;
  readonly error: number;
}

/** @param values at even distances over the whole run, MB */
export function floorOf(values: readonly number[], minutes: number): Floor {
  const judged = values.slice(Math.floor(values.length / 3)).filter(Number.isFinite);
  const size = judged.length / PARTS;
  const floors = Array.from({ length: PARTS }, (_, part) =>
    Math.min(...judged.slice(Math.floor(part * size), Math.floor((part + 1) * size))),
  );
  if (!floors.every(Number.isFinite)) return { verdict: 'UNDECIDED', perHour: Number.NaN, error: Number.NaN };
  const { slope, error } = lineThrough(floors);
  const partsPerHour = PARTS / (((2 / 3) * minutes) / 60);
  const [perHour, uncertain] = [slope * partsPerHour, STUDENT_T * error * partsPerHour];
  return { verdict: verdictOf(perHour, uncertain), perHour, error: uncertain };
}

function verdictOf(perHour: number, error: number): Verdict {
  if (perHour + error < FLAT_MB_PER_HOUR) return 'flat';
  return perHour - error > 0 ? 'RISES' : 'UNDECIDED';
}

/** Least squares over 0, 1, 2 …, and the standard error of the slope. */
function lineThrough(values: readonly number[]): { readonly slope: number; readonly error: number } {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const spread = values.reduce((sum, _, index) => sum + (index - middle) ** 2, 0);
  const slope = values.reduce((sum, value, index) => sum + (index - middle) * (value - mean), 0) / spread;
  const left = values.reduce((sum, value, index) => sum + (value - mean - slope * (index - middle)) ** 2, 0);
  return { slope, error: Math.sqrt(left / (values.length - 2) / spread) };
}

/** Of the run: before the part that is judged. */
export const FIRST_COLLECTION = 1 / 6;

/** @param alive after full collections at a sixth and at the end, MB */
export function aliveVerdict(alive: readonly number[], minutes: number): Verdict {
  const [first, last] = [alive[0], alive.at(-1)];
  if (alive.length < 2 || first === undefined || last === undefined) return 'UNDECIDED';
  const hours = ((1 - FIRST_COLLECTION) * minutes) / 60;
  const isFlat = last - first <= ALIVE_NOISE_MB + FLAT_MB_PER_HOUR * hours && last <= (1 + ALIVE_SHARE) * first;
  return isFlat ? 'flat' : 'RISES';
}
