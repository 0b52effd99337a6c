// Curves over a number as a small SVG, for documents, without a library: two benches draw with it. Apart from
// soak-chart.ts, whose panels share one axis of time.

interface Curve {
  readonly name: string;
  /** In ascending order of x. */
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Plot {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly curves: readonly Curve[];
  /** Vertical lines. */
  readonly marks?: readonly { readonly x: number; readonly name: string }[];
  /** Powers of ten are equally far apart; else it begins at zero. */
  readonly logX?: boolean;
  readonly logY?: boolean;
}

const [WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM] = [640, 320, 60, 34, 150, 40];
const COLORS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf', '#8c564b', '#7f7f7f'];

export function svgOf({ title, x, y, curves, marks = [], logX = false, logY = false }: Plot): string {
  const all = curves.flatMap(({ points }) => points);
  const toX = scaleOf([...all.map(([at]) => at), ...marks.map((mark) => mark.x)], logX, LEFT, WIDTH - RIGHT);
  const toY = scaleOf(
    all.map(([, value]) => value),
    logY,
    HEIGHT - BOTTOM,
    TOP,
  );
  const drawn = curves.map(({ name, points }, index) => {
    const color = COLORS[index % COLORS.length];
    const line = points.map(([at, value]) => `${toX.place(at).toFixed(1)},${toY.place(value).toFixed(1)}`).join(' ');
    const legend = `<text x="${WIDTH - RIGHT + 10}" y="${TOP + 12 + index * 15}" fill="${color}">${escaped(name)}</text>`;
    const dots = points.length > 12 ? [] : points.map(([at, value]) => dotAt(toX.place(at), toY.place(value), color));
    return [`<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${line}"/>`, ...dots, legend].join(
      '\n',
    );
  });
  const ticks = [
    ...toX.ticks.map((tick) => textAt(toX.place(tick), HEIGHT - BOTTOM + 14, 'middle', short(tick))),
    ...toY.ticks.map((tick) => textAt(LEFT - 5, toY.place(tick) + 4, 'end', short(tick))),
  ];
  const lines = marks.map(({ x: at, name }) => {
    const place = toX.place(at).toFixed(1);
    return `<path d="M${place} ${TOP}V${HEIGHT - BOTTOM}" stroke="#aaa" stroke-dasharray="3 3"/>\n${textAt(toX.place(at), TOP - 3, 'middle', name)}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    textAt(LEFT, 14, 'start', title),
    `<path d="M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}" fill="none" stroke="#999"/>`,
    ...ticks,
    ...lines,
    ...drawn,
    textAt((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, 'middle', x),
    `<text transform="translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">${escaped(y)}</text>`,
    '</svg>\n',
  ].join('\n');
}

/** Share of the values that are at most x, for a curve that rises to their share of all. */
export function sharesOf(values: readonly number[], until: number, steps = 200): [x: number, share: number][] {
  const sorted = values.toSorted((one, other) => one - other);
  let count = 0;
  return Array.from({ length: steps + 1 }, (_, step) => {
    const x = (until * step) / steps;
    while (count < sorted.length && (sorted[count] ?? 0) <= x) count += 1;
    return [x, count / Math.max(1, sorted.length)];
  });
}

interface Scale {
  readonly ticks: readonly number[];
  place(value: number): number;
}

function scaleOf(values: readonly number[], isLog: boolean, from: number, to: number): Scale {
  const finite = values.filter((value) => Number.isFinite(value) && (!isLog || value > 0));
  const most = Math.max(...finite, Number.MIN_VALUE);
  if (isLog) {
    const [low, high] = [Math.floor(Math.log10(Math.min(...finite, most))), Math.ceil(Math.log10(most))];
    const span = Math.max(1, high - low);
    return {
      ticks: Array.from({ length: span + 1 }, (_, power) => 10 ** (low + power)),
      place: (value) => from + ((Math.log10(value) - low) / span) * (to - from),
    };
  }
  const step = niceStep(most / 5);
  return {
    ticks: Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step),
    place: (value) => from + (value / most) * (to - from),
  };
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10) * power;
}

function dotAt(x: number, y: number, color: string | undefined): string {
  return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="2.5" fill="${color}"/>`;
}

function textAt(x: number, y: number, anchor: string, text: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(text)}</text>`;
}

function short(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
