// `strongroom eif compare`: whether two builds are one image and where they first differ, or whether an image is the
// one of a published pcrs.json. Exit codes as diff(1) has them.

import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { JSON_OUTPUT } from '../../common/command-line/json-output.ts';
import { command } from '../../common/command-line/program.ts';
import type { Printed } from '../../common/command-line/terminal.ts';
import { compareImages, type Difference } from '../image-difference.ts';
import { WrongUsage } from '../inputs.ts';
import { comparedWithReference } from './compare-reference.ts';
import { naming, readImageBytes } from './images.ts';
import { json } from './text.ts';

export const compareCommand = command(
  {
    summary: 'Say whether two images are the same, or an image the one that was published',
    usage: ['IMAGE IMAGE [OPTIONS]', 'IMAGE --reference FILE [OPTIONS]'],
    notes: [
      'Exit 0 when they are the same, 1 when they differ, 2 when one of them cannot be read, 10 when they are the same ' +
        'and the record names no commit, changed sources (-modified), or packages that were not compared with the ' +
        'lockfile: nobody else can build that image.',
    ],
    argument: { name: 'IMAGE', meaning: 'An image file', count: 'many' },
    flags: {
      reference: { placeholder: 'FILE', meaning: 'A published pcrs.json, in place of the second image' },
      record: {
        placeholder: 'FILE',
        meaning: 'With --reference: the pcrs.json of your own build, whose inputs are compared',
      },
      config: {
        placeholder: 'FILE',
        meaning: 'With --reference: the configuration that your image will fetch, for PCR16',
      },
      ...JSON_OUTPUT,
    },
    examples: [
      'strongroom eif compare mine/image.eif theirs/image.eif',
      'strongroom eif compare build/image/image.eif --reference published/pcrs.json --record build/image/pcrs.json',
    ],
  },

  async ({ values, words }, terminal: Printed) => {
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
  EXIT.refused,
);

function comparedWithImage(first: string, second: string, asksForJson: boolean, { stdout }: Printed): ExitCode {
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
