// The last looks at a fleet, for the lines that show where rate and p99 come from: alone because the view is pure, and
// this remembers.

/** What a look tells of a replica; null where it does not. */
interface Rated {
  readonly signedPerSecond: number | null;
  readonly p99Ms: number | null;
}

/** Of the fleet, or of one replica; null where a look did not tell. */
interface Trend {
  readonly signedPerSecond: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
}

export interface Trends {
  readonly fleet: Trend;
  /** Signatures a second of each replica, in the order of the views. */
  readonly replicas: readonly (readonly (number | null)[])[];
}

const MAX_LOOKS = 120;

export class History {
  readonly #looks: (readonly Rated[])[] = [];

  add(views: readonly Rated[]): void {
    this.#looks.push(views);
    if (this.#looks.length > MAX_LOOKS) this.#looks.shift();
  }

  get trends(): Trends {
    const of = (read: (view: Rated) => number | null, join: (values: readonly number[]) => number) =>
      this.#looks.map((views) => {
        const values = views.map(read).filter((value) => value !== null);
        return values.length === 0 ? null : join(values);
      });
    return {
      fleet: {
        signedPerSecond: of(
          ({ signedPerSecond }) => signedPerSecond,
          (values) => values.reduce((sum, value) => sum + value, 0),
        ),
        // Of several replicas the slowest is what a client may meet.
        p99Ms: of(
          ({ p99Ms }) => p99Ms,
          (values) => Math.max(...values),
        ),
      },
      replicas: (this.#looks.at(-1) ?? []).map((_, at) =>
        this.#looks.map((views) => views[at]?.signedPerSecond ?? null),
      ),
    };
  }
}

const BARS = '▁▂▃▄▅▆▇█';

/** The last values, a column each, from nothing to the highest of them; a blank where nothing is known. */
export function sparkline(values: readonly (number | null)[], columns: number): string {
  const shown = values.slice(-columns);
  const highest = Math.max(...shown.map((value) => value ?? 0));
  return shown
    .map((value) => {
      if (value === null) return ' ';
      return BARS[highest === 0 ? 0 : Math.min(BARS.length - 1, Math.floor((value / highest) * BARS.length))];
    })
    .join('');
}
