// `strongroom eif compare`: whether two builds are one image, and where they first differ. Exit codes as diff(1) has
// them.

import type { Description } from '../../command-line/command.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { JSON_OUTPUT } from '../../command-line/json-output.ts';
import { compareImages, type Difference } from '../compare.ts';
import { type Command, json, readArguments } from './command.ts';
import { naming, readImageBytes } from './images.ts';

const DESCRIPTION = {
  summary: 'Say whether two images are the same, and where they first differ',
  notes: ['Exit 0 when they are equal byte for byte, 1 when they differ, 2 when one of them cannot be read.'],
  argument: { name: 'IMAGE', meaning: 'An image file', count: 2 },
  flags: JSON_OUTPUT,
  examples: ['strongroom eif compare mine/image.eif theirs/image.eif'],
} as const satisfies Description;

export const compareCommand: Command = {
  description: DESCRIPTION,
  troubleExitCode: EXIT.refused,

  async run(argv, terminal) {
    const { values, words } = readArguments(argv, DESCRIPTION, terminal);
    const [first = '', second = ''] = words;
    const [a, b] = [readImageBytes(first), readImageBytes(second)];
    naming(first, () => compareImages(a, a));
    const difference = naming(second, () => compareImages(a, b));
    terminal.stdout.write(values.json ? json(asJson(difference)) : asTable(difference));
    return difference === undefined ? EXIT.ok : EXIT.failed;
  },
};

function asJson(difference: Difference | undefined): unknown {
  return { equal: difference === undefined, difference: difference ?? null };
}

function asTable(difference: Difference | undefined): string {
  if (difference === undefined) return 'equal\n';
  const { section, path, how, measured } = difference;
  const place = path === undefined ? section : `${section}, ${path.replaceAll(/[^\x20-\x7e]/g, '?')}`;
  return `${place}: ${how}\n${measured ? 'The measurements differ.' : 'The measurements are the same: this part is not measured.'}\n`;
}
