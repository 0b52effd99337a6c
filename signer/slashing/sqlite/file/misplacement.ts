// A database's write-ahead log and its lock are in the same folder, under its name. When a database file is mounted by
// itself, or has a second name, a process that opens it by the other path looks for them elsewhere: the last commits
// are lost, or two signers start. On a network file system neither locks nor syncs are what SQLite takes them for. What
// lies in memory, or in a container's own layer, is warned of.

import { readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Log } from '../../../../common/observe/log.ts';

type FileSystemType = (folder: string) => number;

export function misplacement(path: string, log: Log, typeOf: FileSystemType = fileSystemType): string | undefined {
  const files = ['', '-wal', '-shm', '-lock'].map((suffix) => path + suffix);
  return files.map(problemOf).find((problem) => problem !== undefined) ?? networkProblem(path, log, typeOf);
}

function problemOf(file: string): string | undefined {
  const status = statSync(file, { throwIfNoEntry: false });
  if (status === undefined) return undefined;
  if (status.nlink !== 1) {
    return `${file} has ${status.nlink} names (hard links): keep one, in a folder of its own`;
  }
  if (status.dev !== statSync(dirname(file)).dev || mountPoints().has(file)) {
    return `${file} is mounted by itself: mount the folder, not the file`;
  }
  return undefined;
}

/** A file of the same device that is bound to a name is seen only in the mounts of this process's namespace (Linux). */
function mountPoints(): ReadonlySet<string> {
  let text: string;
  try {
    text = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return new Set();
  }
  return new Set(text.split('\n').map((line) => unescaped(line.split(' ')[4] ?? '')));
}

/** proc(5): space, tab, newline and backslash are written in octal. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function networkProblem(path: string, log: Log, typeOf: FileSystemType): string | undefined {
  const type = typeOf(dirname(path)) >>> 0;
  const name = NETWORK_TYPES[type];
  if (name !== undefined) {
    return `${path} lies on a network file system (${name}): move it to a local disk, or use postgres or dynamodb`;
  }
  const doubt = DOUBTFUL_TYPES[type];
  if (doubt !== undefined) log.warn({ path }, `the slashing database lies on ${doubt}`);
  return undefined;
}

function fileSystemType(folder: string): number {
  return Number(statfsSync(folder, { bigint: true }).type & 0xffffffffn);
}

const IN_MEMORY = 'which a restart of the machine empties: move it to a disk';
// Not refused: FUSE may be local, and what a test or a trial signs may be forgotten.
const DOUBTFUL_TYPES: Readonly<Record<number, string>> = {
  1702057286: 'a FUSE file system: make sure that it is a local one which keeps locks and syncs',
  16914836: `tmpfs, ${IN_MEMORY}`,
  2240043254: `ramfs, ${IN_MEMORY}`,
  2035054128: 'overlayfs, most likely the layer of a container, and ends with it: give it a volume',
};
// linux/magic.h, statfs(2); those of cluster file systems are theirs.
const NETWORK_TYPES: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  22092: 'NCP',
  1937076805: 'Coda',
  1397113167: 'AFS',
  1799439955: 'AFS',
  16914839: '9p',
  12805120: 'Ceph',
  198183888: 'Lustre',
  1196443219: 'GPFS',
  18225520: 'GFS2',
  1952539503: 'OCFS2',
  428016422: 'BeeGFS',
  2866260714: 'PanFS',
  537068840: 'OrangeFS',
};
