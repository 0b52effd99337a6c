// The enclave image file, version 4 (specification/image.md#file). The CRC finds accidents only. A file may come from
// anybody: every offset, size and count is checked, and no byte is left over.

import { crc32 } from 'node:zlib';

export type Architecture = 'x86_64' | 'aarch64';

export interface EnclaveImage {
  readonly architecture: Architecture;
  /** What nitro-cli takes when it is not told. Not measured. */
  readonly defaultMemoryBytes: bigint;
  readonly defaultCpus: bigint;
  readonly kernel: Buffer;
  readonly cmdline: Buffer;
  /** The first is the init ramdisk (PCR1), the others the application (PCR2). */
  readonly ramdisks: readonly Buffer[];
  readonly metadata: Buffer | undefined;
  /** CBOR, as signature.ts reads it. Not measured. */
  readonly signature: Buffer | undefined;
}

export class ImageFormatError extends Error {
  constructor(problem: string) {
    super(`not an enclave image: ${problem}`);
    this.name = 'ImageFormatError';
  }
}

const MAX_IMAGE_BYTES = 1024 ** 3;

const MAGIC = '.eif';
const VERSION = 4;
const HEADER_BYTES = 548;
const SECTION_HEADER_BYTES = 12;
const MAX_SECTIONS = 32;
const AT = {
  version: 4,
  flags: 6,
  memory: 8,
  cpus: 16,
  reserved: 24,
  sections: 26,
  offsets: 28,
  sizes: 284,
  unused: 540,
  crc: 544,
};
const SECTION = { kernel: 1, cmdline: 2, ramdisk: 3, signature: 4, metadata: 5 } as const;
const MEASURED: readonly number[] = [SECTION.kernel, SECTION.cmdline, SECTION.ramdisk];
const FLAGS: Readonly<Record<Architecture, number>> = { x86_64: 0, aarch64: 1 };

interface Section {
  readonly type: number;
  readonly data: Buffer;
}

export function writeImage(image: EnclaveImage): Buffer {
  const sections: readonly Section[] = [
    { type: SECTION.kernel, data: image.kernel },
    { type: SECTION.cmdline, data: image.cmdline },
    ...optional(SECTION.metadata, image.metadata),
    ...image.ramdisks.map((data) => ({ type: SECTION.ramdisk, data })),
    ...optional(SECTION.signature, image.signature),
  ];
  if (sections.length > MAX_SECTIONS) throw new ImageFormatError(`more than ${MAX_SECTIONS} sections`);
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC, 'latin1');
  header.writeUInt16BE(VERSION, AT.version);
  header.writeUInt16BE(FLAGS[image.architecture], AT.flags);
  header.writeBigUInt64BE(image.defaultMemoryBytes, AT.memory);
  header.writeBigUInt64BE(image.defaultCpus, AT.cpus);
  header.writeUInt16BE(sections.length, AT.sections);
  let offset = HEADER_BYTES;
  const parts = sections.flatMap(({ type, data }, at) => {
    header.writeBigUInt64BE(BigInt(offset), AT.offsets + 8 * at);
    header.writeBigUInt64BE(BigInt(data.length), AT.sizes + 8 * at);
    offset += SECTION_HEADER_BYTES + data.length;
    return [sectionHeader(type, data.length), data];
  });
  if (offset > MAX_IMAGE_BYTES) throw new ImageFormatError(`larger than ${MAX_IMAGE_BYTES} bytes`);
  header.writeUInt32BE(checksum(header, parts), AT.crc);
  return Buffer.concat([header, ...parts]);
}

/** Sections are views of the given bytes. @throws ImageFormatError */
export function readImage(bytes: Uint8Array): EnclaveImage {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new ImageFormatError('it does not begin with .eif');
  if (file.length < HEADER_BYTES) throw new ImageFormatError('its header is cut off');
  if (file.length > MAX_IMAGE_BYTES) throw new ImageFormatError(`it is larger than ${MAX_IMAGE_BYTES} bytes`);
  const version = file.readUInt16BE(AT.version);
  if (version !== VERSION) throw new ImageFormatError(`its version is ${version}; version ${VERSION} is read`);
  const architecture = architectureOf(file.readUInt16BE(AT.flags));
  const sections = readSections(file);
  if (file.readUInt32BE(AT.crc) !== checksum(file.subarray(0, HEADER_BYTES), [file.subarray(HEADER_BYTES)]))
    throw new ImageFormatError('its checksum does not match: it was damaged');
  checkOrder(sections);
  const [kernel, cmdline] = [one(sections, 'kernel'), one(sections, 'cmdline')];
  const ramdisks = sections.filter(({ type }) => type === SECTION.ramdisk).map(({ data }) => data);
  if (kernel === undefined || cmdline === undefined || ramdisks.length === 0)
    throw new ImageFormatError('it has no kernel, no command line or no ramdisk');
  return {
    architecture,
    defaultMemoryBytes: file.readBigUInt64BE(AT.memory),
    defaultCpus: file.readBigUInt64BE(AT.cpus),
    kernel,
    cmdline,
    ramdisks,
    metadata: one(sections, 'metadata'),
    signature: one(sections, 'signature'),
  };
}

function optional(type: number, data: Buffer | undefined): Section[] {
  return data === undefined ? [] : [{ type, data }];
}

function sectionHeader(type: number, size: number): Buffer {
  const header = Buffer.alloc(SECTION_HEADER_BYTES);
  header.writeUInt16BE(type, 0);
  header.writeBigUInt64BE(BigInt(size), 4);
  return header;
}

function checksum(header: Buffer, parts: readonly Buffer[]): number {
  return parts.reduce((crc, part) => crc32(part, crc), crc32(header.subarray(0, AT.crc)));
}

function readSections(file: Buffer): Section[] {
  const count = file.readUInt16BE(AT.sections);
  if (count > MAX_SECTIONS) throw new ImageFormatError(`it says that it has ${count} sections`);
  if (file.readUInt16BE(AT.reserved) !== 0 || file.readUInt32BE(AT.unused) !== 0)
    throw new ImageFormatError('reserved bytes of its header are not zero');
  const sections: Section[] = [];
  let offset = HEADER_BYTES;
  for (let at = 0; at < MAX_SECTIONS; at++) {
    const stated = { offset: file.readBigUInt64BE(AT.offsets + 8 * at), size: file.readBigUInt64BE(AT.sizes + 8 * at) };
    if (at >= count) {
      if (stated.offset !== 0n || stated.size !== 0n)
        throw new ImageFormatError('it lists sections that it does not count');
      continue;
    }
    if (stated.offset !== BigInt(offset)) throw new ImageFormatError(`section ${at} is not where its header says`);
    const section = readSection(file, offset, stated.size, at);
    sections.push(section);
    offset += SECTION_HEADER_BYTES + section.data.length;
  }
  if (offset !== file.length)
    throw new ImageFormatError(`there are ${file.length - offset} bytes behind its last section`);
  return sections;
}

function readSection(file: Buffer, offset: number, size: bigint, at: number): Section {
  const start = offset + SECTION_HEADER_BYTES;
  if (BigInt(start) + size > BigInt(file.length)) throw new ImageFormatError(`section ${at} is cut off`);
  const type = file.readUInt16BE(offset);
  if (!Object.values<number>(SECTION).includes(type))
    throw new ImageFormatError(`section ${at} is of unknown type ${type}`);
  if (file.readUInt16BE(offset + 2) !== 0) throw new ImageFormatError(`section ${at} has flags that are not known`);
  if (file.readBigUInt64BE(offset + 4) !== size) throw new ImageFormatError(`section ${at} states two sizes`);
  return { type, data: file.subarray(start, start + Number(size)) };
}

/** The platform measures sections as they come in the file: another order is another PCR0. */
function checkOrder(sections: readonly Section[]): void {
  const measured = sections.map(({ type }) => type).filter((type) => MEASURED.includes(type));
  const expected = measured.toSorted((a, b) => MEASURED.indexOf(a) - MEASURED.indexOf(b));
  if (measured.some((type, at) => type !== expected[at]))
    throw new ImageFormatError('its kernel, command line and ramdisks are not in this order');
}

/** undefined when there is none. @throws when there are several: which of them counts would be up to the reader */
function one(sections: readonly Section[], name: keyof typeof SECTION): Buffer | undefined {
  const found = sections.filter(({ type }) => type === SECTION[name]);
  if (found.length > 1) throw new ImageFormatError(`it has ${found.length} ${name} sections`);
  return found[0]?.data;
}

function architectureOf(flags: number): Architecture {
  if (flags === FLAGS.x86_64) return 'x86_64';
  if (flags === FLAGS.aarch64) return 'aarch64';
  throw new ImageFormatError(`its flags are not known: ${flags}`);
}
