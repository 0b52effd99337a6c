// What tells one database from a copy of it: the identifier of its cluster, the timeline, which counts up when a
// standby is promoted or a backup restored, and how far its write-ahead log has come; and, on the same cluster, the
// numbers of the database and of its table, which what is restored there does not have.

import type { Log } from '../../../../common/observe/log.ts';
import type { Connection } from './connections.ts';

export interface ServerIdentity {
  /** A 64-bit number in decimal. Null where the service does not say it. */
  readonly systemIdentifier: string | null;
  /** `DATABASE/TABLE`, the object identifiers. */
  readonly objects: string;
  readonly timeline: number | null;
}

/** Bytes since the cluster was made; null where the service does not say it. */
export interface ServerPlace extends ServerIdentity {
  readonly walPosition: number | null;
  readonly walFlushed: number | null;
}

/** In SQL. */
export type ServerQuestions = Readonly<Record<'systemIdentifier' | 'timeline' | 'walPosition' | 'walFlushed', string>>;

const SYSTEM_IDENTIFIER = '(SELECT system_identifier::text FROM pg_control_system())';
// The timeline that is written now, as the first 8 hex digits of the file it is written to.
const WAL_TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";
// After a promotion this follows with the next checkpoint only.
const CHECKPOINT_TIMELINE = '(SELECT timeline_id::bigint FROM pg_control_checkpoint())';
const WAL_POSITION = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
const WAL_FLUSHED = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint";
const NOT_SAID = 'NULL';

/** Not in a transaction, which a question that fails would end. */
export async function questionsFor(connection: Connection, log: Log): Promise<ServerQuestions> {
  const systemIdentifier = await firstAnswered(connection, [SYSTEM_IDENTIFIER]);
  const timeline = await firstAnswered(connection, [WAL_TIMELINE, CHECKPOINT_TIMELINE]);
  const walPosition = await firstAnswered(connection, [WAL_POSITION]);
  const walFlushed = await firstAnswered(connection, [WAL_FLUSHED]);
  const questions = { systemIdentifier, timeline, walPosition, walFlushed };
  const missing = Object.entries(questions).filter(([, sql]) => sql === NOT_SAID);
  if (missing.length > 0) {
    log.warn(
      { not_said: missing.map(([name]) => name) },
      'the slashing database does not say what tells it from a copy: a failover or a restore that loses commits is ' +
        'noticed less well',
    );
  }
  return questions;
}

async function firstAnswered(connection: Connection, candidates: readonly string[]): Promise<string> {
  for (const sql of candidates) {
    const answer = await connection.query(`SELECT ${sql} AS answer`).catch(() => undefined);
    if (answer?.rows[0]?.answer != null) return sql;
  }
  return NOT_SAID;
}

/** Settings that lose commits which were answered. */
export async function warnOfUnsafeSettings(connection: Connection, log: Log): Promise<void> {
  const { rows } = await connection.query<Record<string, string> & { standbys: number }>(`
    SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('synchronous_standby_names') AS synchronous_standby_names,
           (SELECT count(*)::int FROM pg_stat_replication) AS standbys`);
  const [settings] = rows;
  if (settings === undefined) return;
  for (const name of ['fsync', 'full_page_writes', 'synchronous_commit']) {
    if (settings[name] === 'off') log.warn({}, `the slashing database runs with ${name}=off: a crash loses history`);
  }
  if (settings.standbys > 0 && settings['synchronous_standby_names'] === '') {
    log.warn(
      { standbys: settings.standbys },
      'the slashing database has standbys and no synchronous_standby_names: a failover loses history, ' +
        'and costs each validator a vote',
    );
  }
}

/** What never changes for a connection: a database with connections is not renamed. */
interface DatabaseIdentity {
  readonly systemIdentifier: string | null;
  readonly database: string;
}
const identities = new WeakMap<Connection, Promise<DatabaseIdentity>>();

export function databaseOf(connection: Connection, { systemIdentifier }: ServerQuestions) {
  const known = identities.get(connection);
  if (known !== undefined) return known;
  const text = `
    SELECT ${systemIdentifier}::text AS "systemIdentifier", oid::text AS database
    FROM pg_database WHERE datname = current_database()`;
  const asked = connection.query<DatabaseIdentity>(text).then(({ rows: [row] }) => {
    if (row === undefined) throw new Error('a connection has a database');
    return row;
  });
  // The caller that awaits it gets the error; when the connection broke before, no caller awaits it.
  asked.catch(() => undefined);
  identities.set(connection, asked);
  return asked;
}

export async function identityOfServer(connection: Connection, questions: ServerQuestions): Promise<ServerIdentity> {
  const text = `SELECT (${questions.timeline})::bigint AS timeline, 'strongroom.store'::regclass::oid::text AS "table"`;
  const { rows } = await connection.query<{ timeline: number | null; table: string }>(text);
  const { systemIdentifier, database } = await databaseOf(connection, questions);
  return { systemIdentifier, objects: `${database}/${rows[0]?.table}`, timeline: rows[0]?.timeline ?? null };
}
