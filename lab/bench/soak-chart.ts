// Curves over time as a small SVG, one panel a measure: for documents, without a library. Apart from the soak, which
// measures.

export interface Chart {
  readonly title: string;
  readonly lines: readonly { readonly name: string; readonly color: string; readonly values: readonly number[] }[];
}

const [WIDTH, PANEL, LEFT, GAP] = [640, 90, 60, 34];
/** Of a line at most; more are averaged. */
const POINTS = 120;

export function chartOf(charts: readonly Chart[], minutes: number): string {
  const height = charts.length * (PANEL + GAP) + 30;
  const panels = charts.map((chart, index) => panelOf(chart, index * (PANEL + GAP) + 20));
  const end = `<text x="${WIDTH - 10}" y="${height - 6}" text-anchor="end">${minutes.toFixed(0)} minutes</text>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">\n` +
    `<title>What three signers used over ${minutes.toFixed(0)} minutes</title>\n` +
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>\n${panels.join('\n')}\n${end}\n</svg>\n`
  );
}

/** The curves of a panel of such a chart, as far as a picture has them. */
export function linesOf(svg: string, title: string): Pick<Chart['lines'][number], 'name' | 'values'>[] {
  const [legend = '', curves = ''] = svg.slice(svg.indexOf(`>${title}</text>`)).split('<path d="');
  const [most, top] = [/text-anchor="end">([\d.e+-]+)<\/text>/, /^M\d+ (\d+)V/].map((of) =>
    Number(of.exec(curves)?.[1]),
  );
  if (most === undefined || top === undefined) throw new Error('not a chart of the soak');
  return [...curves.matchAll(/<polyline fill="none" stroke="(\S+)" points="([^"]*)"/g)].map(
    ([, color, points = '']) => ({
      name: new RegExp(`fill="${color}">([^<]*)<`).exec(legend)?.[1] ?? '',
      values: points.split(' ').map((point) => most * (1 - (Number(point.split(',')[1]) - top) / PANEL)),
    }),
  );
}

function panelOf({ title, lines }: Chart, top: number): string {
  const thinned = lines.map((line) => ({ ...line, values: thin(line.values.filter(Number.isFinite)) }));
  const most = Math.max(1e-9, ...thinned.flatMap(({ values }) => values));
  const legend = thinned.map(
    ({ name, color }, index) => `<text x="${LEFT + 200 + index * 90}" y="${top - 5}" fill="${color}">${name}</text>`,
  );
  const curves = thinned.map(({ color, values }) => {
    const points = values.map((value, index) => {
      const x = LEFT + (index * (WIDTH - LEFT - 10)) / Math.max(1, values.length - 1);
      return `${x.toFixed(1)},${(top + PANEL * (1 - value / most)).toFixed(1)}`;
    });
    return `<polyline fill="none" stroke="${color}" points="${points.join(' ')}"/>`;
  });
  return [
    `<text x="${LEFT}" y="${top - 5}">${title}</text>`,
    ...legend,
    `<path d="M${LEFT} ${top}V${top + PANEL}H${WIDTH - 10}" fill="none" stroke="#999"/>`,
    `<text x="${LEFT - 5}" y="${top + 9}" text-anchor="end">${most.toPrecision(3)}</text>`,
    `<text x="${LEFT - 5}" y="${top + PANEL}" text-anchor="end">0</text>`,
    ...curves,
  ].join('\n');
}

function thin(values: readonly number[]): number[] {
  const size = Math.max(1, Math.ceil(values.length / POINTS));
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) => {
    const part = values.slice(index * size, (index + 1) * size);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}
