// `strongroom eif compare`: whether two builds are one image and where they first differ, or whether an image is the
// one of a published pcrs.json. Exit codes as diff(1) has them.

import { EXIT } from '../../command-line/exit-codes.ts';
import type { Printed } from '../../command-line/terminal.ts';
import { compareImages, type Difference } from '../compare.ts';
import { COMPARE } from '../descriptions/compare.ts';
import { WrongUsage } from '../inputs.ts';
import { type Command, json, readArguments } from './command.ts';
import { comparedWithReference } from './compare-reference.ts';
import { naming, readImageBytes } from './images.ts';

export const compareCommand: Command = {
  description: COMPARE,
  troubleExitCode: EXIT.refused,

  async run(argv, terminal) {
    const { values, words } = readArguments(argv, COMPARE, terminal);
    const { reference, record, config, json: asked } = values;
    const [first = '', second, ...more] = words;
    if (reference !== undefined) {
      if (second !== undefined) throw new WrongUsage('--reference stands in place of the second IMAGE');
      return comparedWithReference(first, { reference, record, config, json: asked }, terminal);
    }
    if (second === undefined || more.length > 0) throw new WrongUsage('name two images, or one and --reference FILE');
    if (record !== undefined || config !== undefined) throw new WrongUsage('--record and --config go with --reference');
    return comparedWithImage(first, second, asked, terminal);
  },
};

function comparedWithImage(first: string, second: string, asksForJson: boolean, { stdout }: Printed): number {
  const [a, b] = [readImageBytes(first), readImageBytes(second)];
  naming(first, () => compareImages(a, a));
  const difference = naming(second, () => compareImages(a, b));
  stdout.write(asksForJson ? json(asJson(difference)) : asTable(difference));
  return difference === undefined ? EXIT.ok : EXIT.failed;
}

function asJson(difference: Difference | undefined): unknown {
  return { equal: difference === undefined, difference: difference ?? null };
}

function asTable(difference: Difference | undefined): string {
  if (difference === undefined) return 'equal\n';
  const { section, path, how, measured } = difference;
  const place = path === undefined ? section : `${section}, ${path.replaceAll(/[^\x20-\x7e]/g, '?')}`;
  return `${place}: ${how}\n${measured ? 'The measurements differ.' : 'The measurements are the same: this part is not measured.'}\n`;
}
