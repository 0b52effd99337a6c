// Archives in POSIX's ustar format (POSIX.1-2017, pax). The same entries give the same bytes: sorted, one time for all,
// no names of users. What does not fit the format is refused.

import { BuildError } from '../../../eif/inputs.ts';
import { type ArchiveEntry, completed, DEFAULT_MODE } from './entry.ts';

const BLOCK_BYTES = 512;
/** Two blocks of zeros end an archive. */
const END = Buffer.alloc(2 * BLOCK_BYTES);
const MAX_NAME_BYTES = 100;
const MAX_PREFIX_BYTES = 155;
const TYPE = { file: '0', symlink: '2', directory: '5' } as const;
const FIELD = {
  name: [0, MAX_NAME_BYTES],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  time: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  target: [157, MAX_NAME_BYTES],
  magic: [257, 8],
  prefix: [345, MAX_PREFIX_BYTES],
} as const satisfies Record<string, readonly [number, number]>;

export function writeTar(entries: readonly ArchiveEntry[], timeSeconds: number): Buffer {
  const parts = completed(entries).flatMap((entry) => {
    const data = entry.type === 'file' ? entry.data : Buffer.alloc(0);
    const path = `${entry.path}${entry.type === 'directory' ? '/' : ''}`;
    return [headerOf(entry, path, timeSeconds), data, Buffer.alloc(-data.length & (BLOCK_BYTES - 1))];
  });
  return Buffer.concat([...parts, END]);
}

function headerOf(entry: ArchiveEntry, path: string, timeSeconds: number): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  const put = (field: keyof typeof FIELD, text: string): void => {
    const [at, length] = FIELD[field];
    if (Buffer.byteLength(text) > length) throw new BuildError(`${path} does not fit into an archive: ${field}`);
    header.write(text, at);
  };
  const number = (field: keyof typeof FIELD, value: number): void =>
    put(field, `${value.toString(8).padStart(FIELD[field][1] - 1, '0')}\0`);

  const { mode = DEFAULT_MODE[entry.type], owner = { uid: 0, gid: 0 } } = entry.type === 'symlink' ? {} : entry;
  const split = splitPath(path);
  put('name', split.name);
  put('prefix', split.prefix);
  number('mode', mode);
  number('uid', owner.uid);
  number('gid', owner.gid);
  number('size', entry.type === 'file' ? entry.data.length : 0);
  number('time', timeSeconds);
  put('type', TYPE[entry.type]);
  put('target', entry.type === 'symlink' ? entry.target : '');
  put('magic', 'ustar\x0000');
  // The sum is of the header with blanks in the place of the sum.
  put('checksum', ' '.repeat(8));
  const sum = header.reduce((total, byte) => total + byte, 0);
  put('checksum', `${sum.toString(8).padStart(6, '0')}\0 `);
  return header;
}

/** A path of more than 100 bytes is cut at a slash; the one before the cut is in neither part. */
function splitPath(path: string): { readonly prefix: string; readonly name: string } {
  if (Buffer.byteLength(path) <= MAX_NAME_BYTES) return { prefix: '', name: path };
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const name = path.slice(at + 1);
    if (name !== '' && Buffer.byteLength(name) <= MAX_NAME_BYTES) return { prefix: path.slice(0, at), name };
  }
  throw new BuildError(`${path} does not fit into an archive: it cannot be cut at a slash`);
}
