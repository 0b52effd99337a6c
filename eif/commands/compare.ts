// `strongroom eif compare`: whether two builds are one image, and where they first differ. Exit codes as diff(1) has
// them.

import { EXIT } from '../../command-line/exit-codes.ts';
import { compareImages, type Difference } from '../compare.ts';
import { type Command, json, outputOf, readArguments } from './command.ts';
import { naming, readImageBytes } from './images.ts';

export const compareCommand: Command = {
  help: `Say whether two images are the same, and where they first differ

Usage: strongroom eif compare IMAGE IMAGE [--output table|json]

Exit 0 when they are equal byte for byte, 1 when they differ, 2 when one of them cannot be read.

Options:
  --output table|json  What to print (default: table)

Examples:
  strongroom eif compare mine/image.eif theirs/image.eif
`,
  troubleExitCode: EXIT.refused,

  async run(argv, { stdout }) {
    const given = readArguments(argv, { single: ['output'], positionals: 2 });
    const output = outputOf(given);
    const [first = '', second = ''] = given.positionals;
    const [a, b] = [readImageBytes(first), readImageBytes(second)];
    naming(first, () => compareImages(a, a));
    const difference = naming(second, () => compareImages(a, b));
    stdout.write(output === 'json' ? json(asJson(difference)) : asTable(difference));
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
