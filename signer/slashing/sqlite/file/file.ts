// The database file itself: who may read it, where it may lie, that one process has it, and the mark of its end in
// order. Safety does not rest on the lock; it keeps a second signer and the offline commands from starting by mistake.
// The lock is the operating system's, on a file next to the database: it ends with the process, however that ends.

import { chmodSync, closeSync, openSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { adviceOn } from '../../../../common/command-line/file-faults.ts';
import { errorCode } from '../../../../common/formats/error-code.ts';
import type { Log } from '../../../../common/observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import { isBusy } from '../tables/rows.ts';
import { misplacement } from './misplacement.ts';

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
    throw unusableFile(`the database file cannot be created or made private${faultText(cause)}`, { path, cause });
  }
}

export function refuseMisplaced(realPath: string, log: Log): void {
  const problem = misplacement(realPath, log);
  if (problem !== undefined) throw unusableFile(problem, { path: realPath });
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
    throw unusableFile(problem, { path: realPath, cause });
  }
  return {
    release(): void {
      if (connection.isOpen) connection.close();
    },
  };
}

export function unusableFile(hint: string, { path, cause }: { path: string; cause?: unknown }): SignerError {
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
