// The bars of the requirement (specification/limits.md#performance) and how a figure is printed beside them: `good`,
// `accepted` or BELOW.

export type Core = 'native' | 'portable';

export interface Bar {
  readonly accept: number;
  readonly good: number;
  readonly unit?: string;
  /** Throughputs: more is better. */
  readonly higherIsBetter?: true;
}

const ratio = (accept: number, good: number): Bar => ({ accept, good });
const seconds = (accept: number, good: number): Bar => ({ accept, good, unit: ' s' });
const rate = (accept: number, good: number): Bar => ({ accept, good, higherIsBetter: true });

const milliseconds = (accept: number, good: number): Bar => ({ accept, good, unit: ' ms' });
const bytes = (accept: number, good: number): Bar => ({ accept, good, unit: ' bytes' });

/** A block proposal beside ten batches of 2,048 keys. */
const BLOCK_BESIDE_BATCHES_P99 = milliseconds(15, 15);

export interface Bars {
  readonly distinctCpu: Bar;
  readonly distinctRate: Bar;
  readonly batchCpu: Bar;
  readonly batchRate: Bar;
  readonly blockBesideBatchesP99: Bar;
  readonly burstCpu: Bar;
  readonly burstRate: Bar;
  readonly tlsCpu: Bar;
  readonly tenThousand: Bar;
  readonly halfLoadP99: Bar;
  readonly loneP50: Bar;
  readonly fsyncs: Bar;
  readonly bytesPerKey: Bar;
  /** 100,000 keys of a table. */
  readonly tableReady: Bar;
  /** 1,000 scrypt keystores from the key cache. */
  readonly cachedReady: Bar;
}

export const BARS: Readonly<Record<Core, Bars>> = {
  portable: {
    distinctCpu: ratio(1.5, 1.3),
    distinctRate: rate(0.62, 0.72),
    batchCpu: ratio(1.2, 1.1),
    batchRate: rate(0.75, 0.85),
    blockBesideBatchesP99: BLOCK_BESIDE_BATCHES_P99,
    burstCpu: ratio(1.45, 1.3),
    burstRate: rate(0.64, 0.74),
    tlsCpu: ratio(1.5, 1.35),
    tenThousand: ratio(1.85, 1.55),
    halfLoadP99: milliseconds(25, 10),
    loneP50: milliseconds(2, 1.2),
    fsyncs: ratio(0.1, 0.08),
    bytesPerKey: bytes(800, 400),
    tableReady: seconds(15, 10),
    cachedReady: seconds(2, 2),
  },
  native: {
    distinctCpu: ratio(1.35, 1.2),
    distinctRate: rate(0.7, 0.8),
    batchCpu: ratio(0.36, 0.3),
    batchRate: rate(2.6, 3),
    blockBesideBatchesP99: BLOCK_BESIDE_BATCHES_P99,
    burstCpu: ratio(0.6, 0.52),
    burstRate: rate(1.4, 1.6),
    tlsCpu: ratio(0.68, 0.58),
    tenThousand: ratio(0.9, 0.7),
    halfLoadP99: milliseconds(12, 6),
    loneP50: milliseconds(1.5, 0.9),
    fsyncs: ratio(0.06, 0.04),
    bytesPerKey: bytes(600, 300),
    tableReady: seconds(10, 7),
    cachedReady: seconds(1, 1),
  },
};

export type Mark = 'good' | 'accepted' | 'BELOW';

export function markOf(value: number, { accept, good, higherIsBetter }: Bar): Mark {
  const reaches = (bar: number): boolean => (higherIsBetter ? value >= bar : value <= bar);
  if (reaches(good)) return 'good';
  return reaches(accept) ? 'accepted' : 'BELOW';
}

/** `CPU / S   0.83   (accept 0.85, good 0.7: accepted)` */
export function row(label: string, value: number, bar?: Bar): string {
  const unit = bar?.unit ?? '';
  const figure = `${value >= 100 ? value.toFixed(0) : value.toPrecision(3)}${unit}`;
  const beside =
    bar === undefined ? '' : `(accept ${bar.accept}${unit}, good ${bar.good}${unit}: ${markOf(value, bar)})`;
  return `  ${label.padEnd(34)}${figure.padStart(10)}   ${beside}`.trimEnd();
}

export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
