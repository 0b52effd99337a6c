// The database file itself: who may read it, where it may lie, that one process has it, and the mark of its end in
// order. Safety does not rest on the lock; it keeps a second signer and the offline commands from starting by mistake.
// The lock is the operating system's, on a file beside the database: it ends with the process, however that ends.

import {
  chmodSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { adviceOn } from '../../../../common/command-line/file-faults.ts';
import { syncFolderNow } from '../../../../common/command-line/sync-folder.ts';
import { errorCode } from '../../../../common/formats/error-code.ts';
import type { Log } from '../../../../common/observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import { isBusy } from '../tables/rows.ts';

const PRIVATE_MODE = 0o600;

export type FileLock = ReturnType<typeof lockDatabase>;

/** The one name of the file, whatever links lead to it; creates it, empty and private, when it is missing. */
export function preparePrivateFile(path: string, log: Log): { readonly realPath: string; readonly isNew: boolean } {
  try {
    const named = join(realpathSync(dirname(path)), basename(path));
    const isNew = createPrivate(named);
    const realPath = realpathSync(named);
    makePrivate(realPath, log);
    return { realPath, isNew };
  } catch (cause) {
    throw unusable(`the database file cannot be created or made private${faultText(cause)}`, { path, cause });
  }
}

export function refuseMisplaced(realPath: string, log: Log): void {
  const problem = misplacement(realPath, log);
  if (problem !== undefined) throw unusable(problem, { path: realPath });
}

function faultText(cause: unknown): string {
  const code = errorCode(cause);
  const advice = adviceOn(code ?? '');
  return `${code === undefined ? '' : ` (${code})`}${advice === undefined ? '' : `: ${advice}`}`;
}

/** @throws SignerError slashing_unavailable while another opening of the same database holds the lock */
export function lockDatabase(realPath: string, log: Log) {
  const lockFile = preparePrivateFile(`${realPath}-lock`, log);
  const connection = new DatabaseSync(lockFile.realPath, { timeout: 0 });
  try {
    connection.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    connection.close();
    const problem = isBusy(cause)
      ? 'the database is in use by another process: stop it first'
      : `the lock file of the database cannot be used: ${lockFile.realPath}`;
    throw unusable(problem, { path: realPath, cause });
  }
  return {
    release(): void {
      if (connection.isOpen) connection.close();
    },
  };
}

export function unusable(hint: string, { path, cause }: { path: string; cause?: unknown }): SignerError {
  return new SignerError('slashing_unavailable', { hint, cause, detail: { path } });
}

// Opening and closing a file that this process has open would drop its locks on it (POSIX), so an existing file is
// never opened here: `wx` fails without opening.
function createPrivate(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_MODE));
    return true;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    return false;
  }
}

function makePrivate(path: string, log: Log): void {
  const status = statSync(path);
  if (!status.isFile()) throw new Error('not a regular file');
  if ((status.mode & 0o777) === PRIVATE_MODE) return;
  chmodSync(path, PRIVATE_MODE);
  log.warn({ path, mode: (status.mode & 0o777).toString(8) }, 'the slashing database was open to others: made private');
}

// The mark beside a database that was closed in order, with all its commits: which file it was, and the number that the
// last commit wrote into it. A database without its mark may be an older copy, or have lost its write-ahead log. The
// mark has no code: a person who may write here may also put back file and mark together, which only a state table
// notices.

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

// Beside a database are its write-ahead log and its lock, under its name: a file that is mounted by itself, or has a
// second name, has them elsewhere for somebody, and what was committed last is lost, or two signers start. On a network
// file system neither locks nor syncs are what SQLite takes them for.

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
  if (type === FUSE) {
    log.warn(
      { path },
      'the slashing database lies on a FUSE file system: make sure that it is a local one which keeps locks and syncs',
    );
  }
  return undefined;
}

function fileSystemType(folder: string): number {
  return Number(statfsSync(folder, { bigint: true }).type & 0xffffffffn);
}

const FUSE = 0x65735546;
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

// Whether the database that is open is still the one at its path. Files that are deleted or replaced under a running
// signer take its commits with them. None is opened here: closing it would drop this process's locks on it (POSIX).

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
