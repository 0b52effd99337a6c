// Whether a start could use the database, without opening it as a start does: `server --check`. It writes nothing,
// makes no file, and leaves none behind: a log or an index that another user than the signer's had made would stop the
// next start. What the last commits of an unclean end say is read by the start alone.

import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Log } from '../../../observe/log.ts';
import { lockDatabase, refuseMisplaced, unusable } from './file/file.ts';
import { confirmOurs, DatabaseRefusal, type ExpectedMetadata } from './tables/schema.ts';

export interface LookOptions extends ExpectedMetadata {
  /** anti_slashing.path */
  readonly path: string;
  /** A signer that runs has it open: only what can be said beside it is. */
  readonly isInUse: boolean;
}

/** @returns whether there is a database yet @throws SignerError slashing_unavailable, as opening it would */
export function lookAtDatabase({ path, isInUse, ...expected }: LookOptions, log: Log): 'new' | 'good' {
  if (!existsSync(path)) return 'new';
  const realPath = realpathSync(path);
  try {
    accessSync(realPath, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw unusable('the database file cannot be read and written by this user', { path, cause });
  }
  refuseMisplaced(realPath, log);
  // The lock is asked for where a signer has made one: its file is not made here.
  const lock = !isInUse && existsSync(`${realPath}-lock`) ? lockDatabase(realPath, log) : undefined;
  try {
    return confirmMetadata(realPath, expected);
  } finally {
    lock?.release();
  }
}

function confirmMetadata(realPath: string, expected: ExpectedMetadata): 'new' | 'good' {
  const isClean = !existsSync(`${realPath}-wal`);
  const url = pathToFileURL(realPath);
  url.search = 'immutable=1'; // the one way to read that makes no file beside it; the log is not looked at then
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(url, { readOnly: true });
    const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table'").get();
    if (tables?.['count'] === 0) return isClean ? 'new' : 'good';
    confirmOurs(connection, expected);
    return 'good';
  } catch (cause) {
    if (cause instanceof DatabaseRefusal) throw unusable(cause.message, { path: realPath, cause });
    if (!isClean) return 'good'; // what is missing may be in the log
    throw unusable('the database cannot be read', { path: realPath, cause });
  } finally {
    connection?.close();
  }
}
