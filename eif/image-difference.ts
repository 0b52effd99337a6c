// The first difference of two images, in the order in which a reader would look: what is measured first, by section and
// by file, then what is not. Two images are equal when their bytes are.

import { describeRamdisk } from './describe.ts';
import type { ReadEntry } from './format/cpio.ts';
import { type EnclaveImage, readImage } from './format/format.ts';
import { sha256Hex } from './measure.ts';

export interface Difference {
  /** `kernel`, `cmdline`, `ramdisk 2`, `metadata`, `header` … */
  readonly section: string;
  readonly path?: string;
  readonly how: string;
  readonly measured: boolean;
}

/** @returns undefined when they are equal @throws ImageFormatError */
export function compareImages(a: Buffer, b: Buffer): Difference | undefined {
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
