// The paths inside a ramdisk: relative to its root, one way to write each. What could name another place, or one place
// twice, is refused.

/** The kernel leaves out, without a word, an entry whose name is longer (Linux's init/initramfs.c). */
const MAX_PATH_BYTES = 4095;
const MAX_NAME_BYTES = 255;

/** newc (cpio(5)): the name of the entry that ends an archive. */
export const TRAILER_NAME = 'TRAILER!!!';

/** @returns why it cannot name an entry, or undefined */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path === TRAILER_NAME) return 'would end the archive';
  if (!path.isWellFormed() || path.includes('\0')) return 'has a character that no path has';
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`;
  for (const name of path.split('/')) {
    if (name === '') return 'begins or ends with a slash, or has two in a row';
    if (name === '.' || name === '..') return `has a ${name}`;
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `has a name longer than ${MAX_NAME_BYTES} bytes`;
  }
  return undefined;
}

export function parentOf(path: string): string | undefined {
  const slash = path.lastIndexOf('/');
  return slash === -1 ? undefined : path.slice(0, slash);
}

export function parentsOf(path: string): string[] {
  const names = path.split('/');
  return names.slice(1).map((_, at) => names.slice(0, at + 1).join('/'));
}
