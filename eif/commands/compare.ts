// `strongroom eif compare`: whether two builds are one image and where they first differ, or whether an image is the
// one of a published pcrs.json. Exit codes as diff(1) has them.

import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { JSON_OUTPUT } from '../../common/command-line/json-output.ts';
import { command } from '../../common/command-line/program.ts';
import type { Printed } from '../../common/command-line/terminal.ts';
import { describeRamdisk } from '../describe.ts';
import type { ReadEntry } from '../format/cpio.ts';
import { type EnclaveImage, readImage } from '../format/format.ts';
import { WrongUsage } from '../inputs.ts';
import { sha256Hex } from '../measure.ts';
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

// The first difference of two images, in the order in which a reader would look: what is measured first, by section and
// by file, then what is not. Two images are equal when their bytes are.

interface Difference {
  /** `kernel`, `cmdline`, `ramdisk 2`, `metadata`, `header` … */
  readonly section: string;
  readonly path?: string;
  readonly how: string;
  readonly measured: boolean;
}

/** @returns undefined when they are equal @throws ImageFormatError */
function compareImages(a: Buffer, b: Buffer): Difference | undefined {
  const [first, second] = [readImage(a), readImage(b)];
  if (a.equals(b)) return undefined;
  return (
    measuredSection('kernel', first.kernel, second.kernel) ??
    measuredSection('cmdline', first.cmdline, second.cmdline) ??
    ramdisksDiffer(first, second) ??
    unmeasured(first, second)
  );
}

function measuredSection(section: string, a: Buffer, b: Buffer): Difference | undefined {
  return a.equals(b) ? undefined : { section, how: bytesDiffer(a, b), measured: true };
}

function ramdisksDiffer(a: EnclaveImage, b: EnclaveImage): Difference | undefined {
  const count = Math.max(a.ramdisks.length, b.ramdisks.length);
  for (let at = 0; at < count; at++) {
    const section = `ramdisk ${at + 1}`;
    const [first, second] = [a.ramdisks[at], b.ramdisks[at]];
    if (first === undefined) return { section, how: 'only in the second image', measured: true };
    if (second === undefined) return { section, how: 'only in the first image', measured: true };
    if (!first.equals(second)) return { section, ...filesDiffer(first, second), measured: true };
  }
  return undefined;
}

function filesDiffer(a: Buffer, b: Buffer): { readonly path?: string; readonly how: string } {
  const [first, second] = [describeRamdisk(a), describeRamdisk(b)];
  if (!first.readable || !second.readable) return { how: `${bytesDiffer(a, b)}; its files cannot be listed` };
  const [left, right] = [first, second].map(({ entries }) => new Map(entries.map((entry) => [entry.path, entry])));
  const paths = [...new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])];
  paths.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  for (const path of paths) {
    const how = entryDiffers(left?.get(path), right?.get(path));
    if (how !== undefined) return { path, how };
  }
  return { how: `${bytesDiffer(a, b)}, and not in its files: in their order, owners or times` };
}

function entryDiffers(a: ReadEntry | undefined, b: ReadEntry | undefined): string | undefined {
  if (a === undefined) return 'only in the second image';
  if (b === undefined) return 'only in the first image';
  if (a.type !== b.type) return `a ${a.type} in the first image, a ${b.type} in the second`;
  if (a.mode !== b.mode) return `mode ${a.mode.toString(8)} in the first image, ${b.mode.toString(8)} in the second`;
  if (a.type === 'file' && b.type === 'file') {
    const [first, second] = [Buffer.from(a.data), Buffer.from(b.data)];
    return first.equals(second) ? undefined : bytesDiffer(first, second);
  }
  return JSON.stringify(a) === JSON.stringify(b) ? undefined : 'another target or device';
}

function unmeasured(a: EnclaveImage, b: EnclaveImage): Difference {
  const empty = Buffer.alloc(0);
  for (const section of ['metadata', 'signature'] as const) {
    const [first, second] = [a[section], b[section]];
    if ((first === undefined) !== (second === undefined))
      return { section, how: `only in the ${first === undefined ? 'second' : 'first'} image`, measured: false };
    if (!(first ?? empty).equals(second ?? empty))
      return { section, how: bytesDiffer(first ?? empty, second ?? empty), measured: false };
  }
  return { section: 'header', how: headersDiffer(a, b), measured: false };
}

function headersDiffer(a: EnclaveImage, b: EnclaveImage): string {
  if (a.architecture !== b.architecture) return `for ${a.architecture} and for ${b.architecture}`;
  if (a.defaultMemoryBytes !== b.defaultMemoryBytes)
    return `default memory of ${a.defaultMemoryBytes} and of ${b.defaultMemoryBytes} bytes`;
  if (a.defaultCpus !== b.defaultCpus) return `${a.defaultCpus} and ${b.defaultCpus} CPUs by default`;
  return 'the order of the sections';
}

function bytesDiffer(a: Buffer, b: Buffer): string {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a[at] === b[at]) at++;
  const sizes = a.length === b.length ? `${a.length} bytes` : `${a.length} and ${b.length} bytes`;
  return `differs from byte ${at} on (${sizes}, SHA-256 ${sha256Hex(a)} and ${sha256Hex(b)})`;
}
