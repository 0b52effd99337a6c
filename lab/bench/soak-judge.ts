// `make soak JUDGE='FILE…'`: judges a soak that was run before, by today's rule (soak-verdict.ts). A file is the chart
// (soak.svg: resident memory, at most 120 points of each signer) or what the soak printed (what was alive).

import { readFileSync } from 'node:fs';
import { linesOf } from './soak-chart.ts';
import { aliveVerdict, floorOf } from './soak-verdict.ts';

const texts = process.argv.slice(2).map((file) => readFileSync(file, 'utf8'));
const minutes = Number(texts.map((text) => /([\d.]+) minutes/.exec(text)?.[1]).find((found) => found !== undefined));
const verdicts: string[] = [];

for (const { name, values } of texts
  .filter((text) => text.startsWith('<svg'))
  .flatMap((svg) => linesOf(svg, 'memory (MB)'))) {
  const { verdict, perHour, error } = floorOf(values, minutes);
  verdicts.push(verdict);
  process.stdout.write(
    `floor of resident memory, ${name}: ${perHour.toFixed(1)} ± ${error.toFixed(1)} MB an hour: ${verdict}\n`,
  );
}
for (const text of texts) {
  for (const [, name, numbers = ''] of text.matchAll(
    /^\| alive after a collection \(MB\) \| (\w+) \| ([\d., ]+) \|/gm,
  )) {
    const verdict = aliveVerdict(numbers.split(',').map(Number), minutes);
    verdicts.push(verdict);
    process.stdout.write(`alive after a collection, ${name}: ${numbers} MB: ${verdict}\n`);
  }
}
if (verdicts.length === 0) throw new Error('neither a chart of a soak nor its output');
process.exit(verdicts.every((verdict) => verdict === 'flat') ? 0 : 1);
