// Whether the database that is open is still the one at its path. Files that are deleted or replaced under a running
// signer take its commits with them. None is opened here: closing it would drop this process's locks on it (POSIX).

import { readdirSync, statSync } from 'node:fs';

/** Its message may be shown. */
export class FilesChanged extends Error {}

/** Device and inode. */
export type FileName = string;

export type OpenFiles = ReturnType<typeof openFilesOf>;

/**
 * Of a database that was just opened. @param expected what it was when this process opened it first
 * @throws FilesChanged when they are not the ones that are open
 */
export function openFilesOf(path: string, expected: FileName | undefined) {
  const names = [path, `${path}-wal`];
  const open = names.map((name) => fileAt(name));
  const held = descriptors();
  for (const [index, file] of open.entries()) {
    if (file === undefined || (held !== undefined && !held.has(file))) throw changed(names[index] ?? path);
  }
  const database = open[0] ?? '';
  if (expected !== undefined && database !== expected) throw changed(path);
  return {
    database,
    /** @throws FilesChanged when one of them is gone, or another file has its name */
    confirm(): void {
      for (let index = 0; index < names.length; index++) {
        const name = names[index] ?? path;
        if (fileAt(name) !== open[index]) throw changed(name);
      }
    },
  };
}

function fileAt(path: string): FileName | undefined {
  const status = statSync(path, { bigint: true, throwIfNoEntry: false });
  return status === undefined ? undefined : `${status.dev}:${status.ino}`;
}

/** What this process has open (Linux); undefined where that cannot be read. */
function descriptors(): ReadonlySet<FileName> | undefined {
  let names: string[];
  try {
    names = readdirSync('/proc/self/fd');
  } catch {
    return undefined;
  }
  const files = names.map((name) => fileAt(`/proc/self/fd/${name}`));
  return new Set(files.filter((file) => file !== undefined));
}

function changed(path: string): FilesChanged {
  const file = path.endsWith('-wal')
    ? 'the write-ahead log of the slashing database'
    : 'the file of the slashing database';
  return new FilesChanged(
    `${file} was deleted or replaced while it was in use: stop the signer, put the right files back, start it again`,
  );
}
