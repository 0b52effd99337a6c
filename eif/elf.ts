// What an ELF file (System V ABI, gABI chapters 4 and 5) asks of its system: loader and shared libraries. An odd file
// is refused: a library that is missing is found out when the enclave does not start.

import type { Architecture } from './format/format.ts';

export interface ElfFile {
  readonly architecture: Architecture;
  /** The dynamic loader, absolute; undefined in libraries and static programs. */
  readonly interpreter: string | undefined;
  readonly needed: readonly string[];
  readonly hasSearchPath: boolean;
}

export class ElfError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'ElfError';
  }
}

const MAGIC = Buffer.from('7f454c460201', 'hex'); // 64 bits, little endian
const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const MACHINES: ReadonlyMap<number, Architecture> = new Map([
  [62, 'x86_64'],
  [183, 'aarch64'],
]);
const PT = { load: 1, dynamic: 2, interp: 3 } as const;
const DT = { null: 0, needed: 1, strtab: 5, strsz: 10, rpath: 15, runpath: 29 } as const;

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

export function readElf(file: Buffer): ElfFile {
  if (!isElf(file) || file.length < HEADER_BYTES) throw new ElfError('it is no 64-bit little-endian ELF file');
  const machine = file.readUInt16LE(18);
  const architecture = MACHINES.get(machine);
  if (architecture === undefined) throw new ElfError(`it is for another machine (${machine})`);
  const segments = readSegments(file);
  const interpreter = segments.find(({ type }) => type === PT.interp);
  const dynamic = segments.find(({ type }) => type === PT.dynamic);
  return {
    architecture,
    interpreter: interpreter === undefined ? undefined : textAt(part(file, interpreter), 0),
    ...(dynamic === undefined ? { needed: [], hasSearchPath: false } : readDynamic(file, dynamic, segments)),
  };
}

export function isElf(file: Buffer): boolean {
  return file.subarray(0, MAGIC.length).equals(MAGIC);
}

function readSegments(file: Buffer): Segment[] {
  const table = number(file.readBigUInt64LE(32));
  const count = file.readUInt16LE(56);
  if (count > 0 && file.readUInt16LE(54) !== PROGRAM_HEADER_BYTES)
    throw new ElfError('its program headers are of no known size');
  return Array.from({ length: count }, (_, at) => {
    const header = part(file, { offset: table + at * PROGRAM_HEADER_BYTES, size: PROGRAM_HEADER_BYTES });
    return {
      type: header.readUInt32LE(0),
      offset: number(header.readBigUInt64LE(8)),
      address: number(header.readBigUInt64LE(16)),
      size: number(header.readBigUInt64LE(32)),
    };
  });
}

function readDynamic(
  file: Buffer,
  dynamic: Segment,
  segments: readonly Segment[],
): Pick<ElfFile, 'needed' | 'hasSearchPath'> {
  const entries: { tag: number; value: number }[] = [];
  const table = part(file, dynamic);
  for (let at = 0; at + 16 <= table.length; at += 16) {
    const tag = number(table.readBigUInt64LE(at));
    if (tag === DT.null) break;
    entries.push({ tag, value: number(table.readBigUInt64LE(at + 8)) });
  }
  const first = (wanted: number): number | undefined => entries.find(({ tag }) => tag === wanted)?.value;
  const names = entries.filter(({ tag }) => tag === DT.needed).map(({ value }) => value);
  const hasSearchPath = entries.some(({ tag }) => tag === DT.rpath || tag === DT.runpath);
  if (names.length === 0) return { needed: [], hasSearchPath };
  const strings = part(file, { offset: offsetOf(first(DT.strtab), segments), size: first(DT.strsz) ?? 0 });
  return { needed: names.map((at) => textAt(strings, at)), hasSearchPath };
}

function offsetOf(address: number | undefined, segments: readonly Segment[]): number {
  const home = segments.find(
    (one) =>
      one.type === PT.load && address !== undefined && address >= one.address && address < one.address + one.size,
  );
  if (home === undefined || address === undefined) throw new ElfError('its string table is nowhere in it');
  return home.offset + (address - home.address);
}

function part(file: Buffer, { offset, size }: Pick<Segment, 'offset' | 'size'>): Buffer {
  if (offset + size > file.length) throw new ElfError('it is cut off');
  return file.subarray(offset, offset + size);
}

function textAt(strings: Buffer, start: number): string {
  const end = strings.indexOf(0, start);
  if (start >= strings.length || end === -1) throw new ElfError('one of its names has no end');
  return strings.toString('utf8', start, end);
}

function number(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new ElfError('one of its numbers is too large');
  return Number(value);
}
