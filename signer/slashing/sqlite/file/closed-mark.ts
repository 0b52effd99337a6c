// The closed mark: a file next to a database that was closed in order, with all its commits. It says which file the
// database was, and the number that the last commit wrote into it. A database without its mark may be an older copy, or
// have lost its write-ahead log. The mark has no code: a person who may write here may also put back file and mark
// together, which only a state table notices.

import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolderNow } from '../../../../common/command-line/sync-folder.ts';

export function readClosedMark(path: string): string | undefined {
  if (statSync(`${path}-wal`, { throwIfNoEntry: false }) !== undefined) return undefined;
  try {
    const [number, file] = readFileSync(markOf(path), 'utf8').split(' ');
    return file === fileOf(path) ? number : undefined;
  } catch {
    return undefined;
  }
}

/** Durable when it returns: from now on the file is in use. */
export function removeClosedMark(path: string): void {
  rmSync(markOf(path), { force: true });
  syncFolderNow(dirname(path));
}

export function writeClosedMark(path: string, number: string): void {
  try {
    writeFileSync(markOf(path), `${number} ${fileOf(path)}`, { mode: 0o600, flush: true });
    syncFolderNow(dirname(path));
  } catch {
    // A file without its mark is in doubt.
  }
}

const markOf = (path: string): string => `${path}-closed`;

/** The time of the last change of the inode cannot be set, unlike that of the content. */
function fileOf(path: string): string {
  const { ino, birthtimeNs, ctimeNs, size } = statSync(path, { bigint: true });
  return [ino, birthtimeNs, ctimeNs, size].join('/');
}
