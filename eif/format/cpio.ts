// Ramdisks: the "newc" cpio archive (cpio(5)). The same entries give the same bytes (specification/image.md#ramdisks).
// An archive that could unpack to something other than its listing says is refused, because people compare listings.

import { parentOf, parentsOf, pathProblem, TRAILER_NAME } from './archive-path.ts';

/** Paths are relative to the root, without a leading slash. `mode`: the permission bits. */
export type CpioEntry =
  | { readonly type: 'directory'; readonly path: string; readonly mode?: number }
  | { readonly type: 'file'; readonly path: string; readonly data: Uint8Array; readonly mode?: number }
  | { readonly type: 'symlink'; readonly path: string; readonly target: string }
  | {
      readonly type: 'character-device';
      readonly path: string;
      readonly major: number;
      readonly minor: number;
      readonly mode?: number;
    };

export type ReadEntry = CpioEntry & { readonly mode: number };

export class CpioError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'CpioError';
  }
}

const MAX_ENTRIES = 65_536;
/** Header fields are 8 hexadecimal digits. */
const MAX_FILE_BYTES = 0xffff_ffff;
/** The kernel reads a link's target into a buffer of PATH_MAX. */
const MAX_TARGET_BYTES = 4095;

const MAGIC = '070701';
const HEADER_BYTES = 110;
const ALIGNMENT_BYTES = 4;
/** What comes behind in memory (the next ramdisk) starts aligned. */
const BLOCK_BYTES = 512;

const PERMISSIONS = 0o7777;
const KIND = { directory: 0o04, file: 0o10, symlink: 0o12, 'character-device': 0o02 } as const;
const DEFAULT_MODE = { directory: 0o755, file: 0o644, symlink: 0o777, 'character-device': 0o600 } as const;

/** Folders above an entry are added, of mode 0755. @throws CpioError for an unsafe path */
export function writeCpio(entries: Iterable<CpioEntry>): Buffer {
  const byPath = new Map<string, CpioEntry>();
  for (const entry of entries) {
    checkEntry(entry);
    if (byPath.has(entry.path)) throw new CpioError(`${entry.path} is there twice`);
    byPath.set(entry.path, entry);
  }
  for (const path of [...byPath.keys()].flatMap(parentsOf)) {
    const parent = byPath.get(path) ?? { type: 'directory', path };
    if (parent.type !== 'directory') throw new CpioError(`${path} has entries beneath it and is no directory`);
    byPath.set(path, parent);
  }
  if (byPath.size > MAX_ENTRIES) throw new CpioError(`there are more than ${MAX_ENTRIES} entries`);
  const sorted = [...byPath.values()].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  const parts = sorted.flatMap((entry, at) => record(entry, at + 1));
  parts.push(...header({ name: TRAILER_NAME, inode: 0, mode: 0, links: 1, size: 0 }));
  return padded(Buffer.concat(parts), BLOCK_BYTES);
}

/** File contents are views of the given bytes. @throws CpioError */
export function readCpio(bytes: Uint8Array): ReadEntry[] {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries = new Map<string, ReadEntry>();
  for (let offset = 0; ; ) {
    const { entry, end } = readRecord(archive, offset);
    if (entry === undefined) {
      if (archive.subarray(end).some((byte) => byte !== 0)) throw new CpioError('there are bytes behind its end');
      return [...entries.values()];
    }
    if (entries.has(entry.path)) throw new CpioError(`${entry.path} is there twice`);
    const parent = parentOf(entry.path);
    if (parent !== undefined && entries.get(parent)?.type !== 'directory')
      throw new CpioError(`${entry.path} comes before its folder`);
    entries.set(entry.path, entry);
    if (entries.size > MAX_ENTRIES) throw new CpioError(`there are more than ${MAX_ENTRIES} entries`);
    offset = end;
  }
}

function checkEntry(entry: CpioEntry): void {
  const { path, type } = entry;
  const problem = pathProblem(path);
  if (problem !== undefined) throw new CpioError(`the path ${JSON.stringify(path)} ${problem}`);
  const mode = modeOf(entry);
  if (!Number.isInteger(mode) || mode < 0 || mode > PERMISSIONS) throw new CpioError(`${path}: no mode: ${mode}`);
  if (type === 'file' && entry.data.length > MAX_FILE_BYTES) throw new CpioError(`${path} is larger than 4 GiB`);
  if (type === 'symlink') checkTarget(path, entry.target);
  if (type === 'character-device') {
    for (const number of [entry.major, entry.minor]) {
      if (!Number.isInteger(number) || number < 0 || number > 0xffff_ffff) throw new CpioError(`${path}: no device`);
    }
  }
}

function checkTarget(path: string, target: string): void {
  if (target === '' || target.includes('\0') || !target.isWellFormed() || Buffer.byteLength(target) > MAX_TARGET_BYTES)
    throw new CpioError(`${path} is a link to nothing that can be named`);
}

function modeOf(entry: CpioEntry): number {
  return entry.type === 'symlink' ? DEFAULT_MODE.symlink : (entry.mode ?? DEFAULT_MODE[entry.type]);
}

function record(entry: CpioEntry, inode: number): Buffer[] {
  const data = Buffer.from(entry.type === 'file' ? entry.data : entry.type === 'symlink' ? entry.target : '');
  const device = entry.type === 'character-device' ? entry : { major: 0, minor: 0 };
  const mode = (KIND[entry.type] << 12) | modeOf(entry);
  const links = entry.type === 'directory' ? 2 : 1;
  return [
    ...header({ name: entry.path, inode, mode, links, size: data.length, major: device.major, minor: device.minor }),
    padded(data, ALIGNMENT_BYTES),
  ];
}

interface Header {
  readonly name: string;
  readonly inode: number;
  readonly mode: number;
  readonly links: number;
  readonly size: number;
  readonly major?: number;
  readonly minor?: number;
}

/** cpio(5), "New ASCII Format": owner, group, time, device of the archive and check are zero. */
function header({ name, inode, mode, links, size, major = 0, minor = 0 }: Header): Buffer[] {
  const nameBytes = Buffer.from(`${name}\0`);
  const fields = [inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, nameBytes.length, 0];
  const text = MAGIC + fields.map((field) => field.toString(16).toUpperCase().padStart(8, '0')).join('');
  return [padded(Buffer.concat([Buffer.from(text, 'latin1'), nameBytes]), ALIGNMENT_BYTES)];
}

function padded(bytes: Buffer, alignmentBytes: number): Buffer {
  const missing = alignUp(bytes.length, alignmentBytes) - bytes.length;
  return missing === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(missing)]);
}

function alignUp(length: number, alignmentBytes: number): number {
  return Math.ceil(length / alignmentBytes) * alignmentBytes;
}

function readRecord(archive: Buffer, offset: number): { readonly entry: ReadEntry | undefined; readonly end: number } {
  const text = take(archive, offset, HEADER_BYTES).toString('latin1');
  if (!text.startsWith(MAGIC)) throw new CpioError(`there is no newc header at byte ${offset}`);
  const digits = text.slice(MAGIC.length);
  if (!/^[0-9A-Fa-f]{104}$/.test(digits)) throw new CpioError(`the header at byte ${offset} is not hexadecimal`);
  const field = (at: number): number => Number.parseInt(digits.slice(at * 8, at * 8 + 8), 16);
  const [mode, links, size, major, minor, nameBytes] = [1, 4, 6, 9, 10, 11].map(field) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const path = readName(take(archive, offset + HEADER_BYTES, nameBytes), offset);
  const dataStart = alignUp(offset + HEADER_BYTES + nameBytes, ALIGNMENT_BYTES);
  const data = take(archive, dataStart, size);
  const end = alignUp(dataStart + size, ALIGNMENT_BYTES);
  if (path === TRAILER_NAME) return { entry: undefined, end };
  const problem = pathProblem(path);
  if (problem !== undefined) throw new CpioError(`the path ${JSON.stringify(path)} ${problem}`);
  return { entry: entryOf(path, mode, { links, major, minor, data }), end };
}

function readName(bytes: Buffer, offset: number): string {
  const name = bytes.subarray(0, -1);
  if (bytes.at(-1) !== 0 || name.includes(0))
    throw new CpioError(`the name at byte ${offset} does not end where it says`);
  return name.toString('utf8');
}

interface Contents {
  readonly links: number;
  readonly major: number;
  readonly minor: number;
  readonly data: Buffer;
}

function entryOf(path: string, modeField: number, { links, major, minor, data }: Contents): ReadEntry {
  const kind = modeField >> 12;
  const mode = modeField & PERMISSIONS;
  if (kind !== KIND.directory && links > 1) throw new CpioError(`${path} is a hard link`);
  if (kind === KIND.file) return { type: 'file', path, data, mode };
  if (kind === KIND.symlink) {
    const target = data.toString('utf8');
    checkTarget(path, target);
    return { type: 'symlink', path, target, mode };
  }
  if (data.length > 0) throw new CpioError(`${path} has contents and is no file`);
  if (kind === KIND.directory) return { type: 'directory', path, mode };
  if (kind === KIND['character-device']) return { type: 'character-device', path, major, minor, mode };
  throw new CpioError(`${path} is neither a directory, a file, a symbolic link nor a character device`);
}

function take(archive: Buffer, offset: number, length: number): Buffer {
  if (offset + length > archive.length) throw new CpioError('it is cut off');
  return archive.subarray(offset, offset + length);
}
