// What is in an image, computed from its bytes alone: sections, files, measurements, ceremony, signature. The image may
// be anybody's: what cannot be read is said to be so, and nothing in it is believed about itself but by its digests.

import { ceremonyDigest } from '../ceremony/definition.ts';
import { type Compiled, readCompiledModule } from './bundle/compiled-module.ts';
import { CpioError, type ReadEntry, readCpio } from './format/cpio.ts';
import { type EnclaveImage, readImage } from './format/format.ts';
import { checkImageSignature, type SignatureCheck } from './format/signature.ts';
import { type ImageMeasurements, measureImage, sha256Hex } from './measure.ts';
import { BAKED_PATH, COMPILED_PATH, SOURCES_PATH } from './ramdisks.ts';

export interface ImageDescription {
  readonly image: EnclaveImage;
  readonly sha256: string;
  readonly size: number;
  readonly measurements: ImageMeasurements;
  readonly ramdisks: readonly RamdiskDescription[];
  /** undefined: not an image of strongroom, or not one that this version reads. */
  readonly compiled: Compiled | undefined;
  /** What the image says its own source files are; undefined: nothing that this version reads. */
  readonly sources: readonly SourceFile[] | undefined;
  readonly baked: Buffer | undefined;
  /** undefined: not signed. */
  readonly signature: SignatureCheck | undefined;
}

interface SourceFile {
  readonly path: string;
  readonly sha256: string;
}

export type RamdiskDescription =
  | { readonly readable: true; readonly entries: readonly ReadEntry[] }
  | { readonly readable: false; readonly problem: string };

/** @param configuration the bytes that a fetched configuration will have @throws ImageFormatError */
export function describeImage(bytes: Buffer, configuration?: Buffer): ImageDescription {
  const image = readImage(bytes);
  const ramdisks = image.ramdisks.map(describeRamdisk);
  const files = filesOf(ramdisks);
  const module = files.get(COMPILED_PATH);
  const compiled = module === undefined ? undefined : readCompiledModule(module);
  const baked = compiled?.configuration === 'baked' ? files.get(BAKED_PATH) : undefined;
  const pcr0 = Buffer.from(measureImage(image)['PCR0'] ?? '', 'hex');
  const signature = image.signature === undefined ? undefined : checkImageSignature(image.signature, pcr0);
  const measurements = measureImage(image, {
    configuration: compiled?.configuration === 'baked' ? baked : configuration,
    ceremonyDigest: compiled === undefined ? undefined : ceremonyDigest(compiled.ceremony),
    signingCertificate: signature?.certificate?.raw,
  });
  const sources = readSources(files.get(SOURCES_PATH));
  const sha256 = sha256Hex(bytes);
  return { image, sha256, size: bytes.length, measurements, ramdisks, compiled, sources, baked, signature };
}

/** A line of the list: 64 hex digits, two blanks, a path in the project. */
const SOURCE_LINE = /^([0-9a-f]{64}) {2}([\w./@-]{1,200})$/;

function readSources(list: Buffer | undefined): readonly SourceFile[] | undefined {
  const text = list?.toString('latin1') ?? '';
  const lines = text.endsWith('\n') ? text.slice(0, -1).split('\n') : [];
  const sources = lines.flatMap((line) => {
    const [, sha256, path] = SOURCE_LINE.exec(line) ?? [];
    return sha256 === undefined || path === undefined ? [] : [{ path, sha256 }];
  });
  return lines.length > 0 && sources.length === lines.length ? sources : undefined;
}

export function describeRamdisk(bytes: Buffer): RamdiskDescription {
  try {
    return { readable: true, entries: readCpio(bytes) };
  } catch (error) {
    if (error instanceof CpioError) return { readable: false, problem: error.message };
    throw error;
  }
}

/**
 * The kernel unpacks the ramdisks in turn, so a later entry takes the place of an earlier one; and one ramdisk that
 * cannot be listed could take the place of any.
 */
function filesOf(ramdisks: readonly RamdiskDescription[]): ReadonlyMap<string, Buffer> {
  if (ramdisks.some(({ readable }) => !readable)) return new Map();
  const entries = ramdisks.flatMap((ramdisk) => (ramdisk.readable ? ramdisk.entries : []));
  const last = new Map(entries.map((entry) => [entry.path, entry]));
  return new Map(
    [...last].flatMap(([path, entry]) => (entry.type === 'file' ? [[path, Buffer.from(entry.data)] as const] : [])),
  );
}
