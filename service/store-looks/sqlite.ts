// What `server --check` sees of a SQLite database without opening it. It makes no file and leaves none behind: a log or
// an index that another user than the signer's had made would stop the next start. What the last commits of an unclean
// end say is read by the start alone.

import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { sayAhead } from '../../signer/slashing/future.ts';
import { lockDatabase, refuseMisplaced, unusableFile } from '../../signer/slashing/sqlite/file/file.ts';
import { isBusy } from '../../signer/slashing/sqlite/tables/rows.ts';
import { confirmOurs, DatabaseRefusal, type ExpectedMetadata } from '../../signer/slashing/sqlite/tables/schema.ts';
import type { Marks, StoreFloor } from '../../signer/slashing/types.ts';
import { SILENT_LOG } from '../look.ts';

interface LookOptions extends ExpectedMetadata {
  readonly path: string;
  /** A running signer has the file open: the look says only what it can learn without locking it. */
  readonly isInUse: boolean;
  readonly onFloor: (floor: StoreFloor | null) => void;
  /** The keys that sign over it; told where nothing of the file is still in its log. */
  readonly onRecorded: (keys: ReadonlySet<string>) => void;
  /** What is beyond it lies ahead of the clock, and its keys are named. */
  readonly latest?: StoreFloor | undefined;
}

/** @returns whether there is a database yet @throws SignerError slashing_unavailable, as opening it would */
export function lookAtDatabase(
  { path, isInUse, onFloor, onRecorded, latest, ...expected }: LookOptions,
  log: Log,
): 'new' | 'good' {
  if (!existsSync(path)) return 'new';
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
    return confirmMetadata(realPath, expected, (connection, isWhole) => {
      onFloor(floorOf(connection));
      if (isWhole && !isInUse) onRecorded(recordedKeys(connection));
      if (latest !== undefined) nameAhead(connection, latest, log);
    });
  } finally {
    lock?.release();
  }
}

/** Whether a signer has it open now, or a command. */
export function isOpenElsewhere(path: string): boolean {
  if (!existsSync(path) || !existsSync(`${realpathSync(path)}-lock`)) return false;
  try {
    lockDatabase(realpathSync(path), SILENT_LOG).release();
    return false;
  } catch (error) {
    return error instanceof SignerError && isBusy(error.cause);
  }
}

function confirmMetadata(
  realPath: string,
  expected: ExpectedMetadata,
  look: (connection: DatabaseSync, isWhole: boolean) => void,
): 'new' | 'good' {
  const isClean = !existsSync(`${realPath}-wal`);
  const url = pathToFileURL(realPath);
  url.search = 'immutable=1'; // the one way to read that makes no file in its folder; SQLite ignores the log then
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(url, { readOnly: true });
    const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table'").get();
    if (tables?.['count'] === 0) return isClean ? 'new' : 'good';
    confirmOurs(connection, expected);
    look(connection, isClean);
    return 'good';
  } catch (cause) {
    if (cause instanceof DatabaseRefusal) throw unusableFile(cause.message, { path: realPath, cause });
    if (!isClean) return 'good'; // what is missing may be in the log
    throw unusableFile('the database cannot be read', { path: realPath, cause });
  } finally {
    connection?.close();
  }
}

/** Nothing verifies it. */
function floorOf(connection: DatabaseSync): StoreFloor | null {
  const row = connection
    .prepare(
      `SELECT floor_slot AS slot, floor_source_epoch AS sourceEpoch, floor_target_epoch AS targetEpoch
       FROM metadata WHERE floor_slot IS NOT NULL`,
    )
    .get();
  return (row as unknown as StoreFloor | undefined) ?? null;
}

const RECORDED = `
  SELECT lower(hex(public_key)) AS key FROM validators
  WHERE coalesce(high_slot, low_slot, high_target_epoch, low_target_epoch) IS NOT NULL`;

function recordedKeys(connection: DatabaseSync): ReadonlySet<string> {
  const rows = connection.prepare(RECORDED).all();
  return new Set(rows.map(({ key }) => `0x${String(key)}`));
}

const AHEAD = `
  SELECT lower(hex(public_key)) AS key, max(coalesce(high_slot, -1), coalesce(low_slot, -1)) AS slot,
         max(coalesce(high_source_epoch, -1), coalesce(low_source_epoch, -1)) AS source,
         max(coalesce(high_target_epoch, -1), coalesce(low_target_epoch, -1)) AS target
  FROM validators WHERE slot > ? OR source > ? OR target > ?`;

function nameAhead(connection: DatabaseSync, latest: StoreFloor, log: Log): void {
  const rows = connection.prepare(AHEAD).all(latest.slot, latest.sourceEpoch, latest.targetEpoch);
  const marks = rows.map(({ key, slot, source, target }): [string, Marks] => [
    `0x${String(key)}`,
    { slot: Number(slot), sourceEpoch: Number(source), targetEpoch: Number(target) },
  ]);
  const said = sayAhead(new Map(marks), latest);
  if (said !== undefined) log.warn({}, said);
}
