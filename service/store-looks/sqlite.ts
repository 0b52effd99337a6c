// What `server --check` sees of a SQLite database without opening it. It makes no file and leaves none behind: a log or
// an index that another user than the signer's had made would stop the next start. What the last commits of an unclean
// end say is read by the start alone.

import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { lockDatabase, refuseMisplaced, unusableFile } from '../../signer/slashing/sqlite/file/file.ts';
import { isBusy } from '../../signer/slashing/sqlite/tables/rows.ts';
import { confirmOurs, DatabaseRefusal, type ExpectedMetadata } from '../../signer/slashing/sqlite/tables/schema.ts';
import type { StoreFloor } from '../../signer/slashing/types.ts';
import { SILENT_LOGGER, type StoreGlimpse } from '../look.ts';

interface LookOptions extends ExpectedMetadata {
  readonly path: string;
  /** A running signer has the file open: the look says only what it can learn without locking it. */
  readonly isInUse: boolean;
}

/** @throws SignerError slashing_unavailable, as opening it would */
export function lookAtDatabase({ path, isInUse, ...expected }: LookOptions, log: Log): StoreGlimpse {
  if (!existsSync(path)) {
    refuseMisplaced(path, log);
    return { state: 'new' };
  }
  const realPath = realpathSync(path);
  try {
    accessSync(realPath, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw unusableFile('the database file cannot be read and written by this user', { path, cause });
  }
  refuseMisplaced(realPath, log);
  // The lock is asked for where a signer has made one: its file is not made here.
  const lock = !isInUse && existsSync(`${realPath}-lock`) ? lockDatabase(realPath, log) : undefined;
  try {
    return glimpse(realPath, expected, isInUse);
  } finally {
    lock?.release();
  }
}

/** Whether a signer has it open now, or a command. */
export function isOpenElsewhere(path: string): boolean {
  if (!existsSync(path) || !existsSync(`${realpathSync(path)}-lock`)) return false;
  try {
    lockDatabase(realpathSync(path), SILENT_LOGGER.module('slashing')).release();
    return false;
  } catch (error) {
    return error instanceof SignerError && isBusy(error.cause);
  }
}

function glimpse(realPath: string, expected: ExpectedMetadata, isInUse: boolean): StoreGlimpse {
  const isClean = !existsSync(`${realPath}-wal`);
  const url = pathToFileURL(realPath);
  url.search = 'immutable=1'; // the one way to read that makes no file in its folder; SQLite ignores the log then
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(url, { readOnly: true });
    const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table'").get();
    if (tables?.['count'] === 0) return { state: isClean ? 'new' : 'good' };
    confirmOurs(connection, expected);
    const floor = connection.prepare(FLOOR).get() as unknown as StoreFloor | undefined;
    const marks = connection.prepare(MARKS).all() as unknown as StoreGlimpse['marks'] & {};
    return { state: 'good', floor: floor ?? null, marks, isWhole: isClean && !isInUse };
  } catch (cause) {
    if (cause instanceof DatabaseRefusal) throw unusableFile(cause.message, { path: realPath, cause });
    if (!isClean) return { state: 'good' }; // what is missing may be in the log
    throw unusableFile('the database cannot be read', { path: realPath, cause });
  } finally {
    connection?.close();
  }
}

const FLOOR = `
  SELECT floor_slot AS slot, floor_source_epoch AS sourceEpoch, floor_target_epoch AS targetEpoch
  FROM metadata WHERE floor_slot IS NOT NULL`;

const highest = (mark: string) => `max(coalesce(high_${mark}, low_${mark}), coalesce(low_${mark}, high_${mark}))`;
const MARKS = `
  SELECT '0x' || lower(hex(public_key)) AS key, ${highest('slot')} AS slot,
         ${highest('source_epoch')} AS sourceEpoch, ${highest('target_epoch')} AS targetEpoch
  FROM validators`;
