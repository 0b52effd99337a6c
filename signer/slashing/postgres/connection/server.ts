// What tells one database from a copy of it: the identifier of its cluster, the timeline, which counts up when a
// standby is promoted or a backup restored, and how far its write-ahead log has come; and, on the same cluster, the
// numbers of the database and of its table, which what is restored there does not have.

import type { Log } from '../../../../common/observe/log.ts';
import { coversFloor, higherMarks, marksOf, NO_MARKS } from '../../history/rules.ts';
import { readIncarnations } from '../../incarnation.ts';
import type { SlashableMessage, StoreFloor, StoreIdentity } from '../../types.ts';
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
  // Whoever waits for it gets the error; when the connection broke before, nobody does.
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

// Whether the database is still the one that this process committed to. A promoted standby, a restored backup, or an
// old primary that came back holds less than was answered, and its own rows do not say so. Answers of two connections
// may come in another order, so one is compared with what was known when its question was sent.

export type Lineage = ReturnType<typeof lineage>;

export interface StoreLineage extends Pick<StoreIdentity, 'floor' | 'incarnation'> {
  readonly server: ServerIdentity;
  readonly revision: number;
}

interface KnownStore extends ServerIdentity, Pick<StoreLineage, 'revision' | 'floor'> {
  /** The latest number in its incarnation: every later state of the store still has it (incarnation.ts). */
  readonly number: string;
  /** Another one since the process learnt that the database is another. */
  readonly era: number;
  /** The write-ahead log is never shorter than this, unless it is another log. */
  readonly walAtLeast: number;
}

export function lineage() {
  let recorded = NO_MARKS;
  let known: KnownStore | undefined;
  let era = 0;

  /** Over everything that this process recorded, since it looked at the store. */
  const isRaisedOver = (before: StoreFloor | null, floor: StoreFloor | null) => {
    if (!coversFloor(floor, before) || coversFloor(before, floor)) return false;
    return coversFloor(floor, recorded);
  };
  const learn = (place: ServerPlace, record: StoreLineage) => {
    era += 1;
    const { systemIdentifier, objects, timeline } = place;
    const { revision, floor } = record;
    const number = latestNumber(record);
    known = { systemIdentifier, objects, timeline, era, walAtLeast: surelyKept(place), revision, floor, number };
  };
  const raiseWal = (expected: KnownStore | undefined, position: number) => {
    if (known === undefined || known.era !== (expected?.era ?? known.era)) return;
    known = { ...known, walAtLeast: Math.max(known.walAtLeast, position) };
  };

  return {
    /** An answer to a question that is sent now has to agree with it; undefined before the first answer. */
    get known(): KnownStore | undefined {
      return known;
    },
    /** Records may have been lost: nothing is signed before a jump has raised the store. */
    doubt(
      expected: KnownStore | undefined,
      now: ServerPlace,
      record: StoreLineage,
    ): 'other_server' | 'incarnation' | undefined {
      if (!isSameServer(now, record.server)) return 'other_server';
      if (expected === undefined) {
        if (known === undefined) learn(now, record);
        return known === undefined || isSameServer(now, known) ? undefined : 'other_server';
      }
      const isSame = isSameServer(now, expected);
      const isShorter = now.walPosition !== null && now.walPosition < expected.walAtLeast;
      const isOlder = record.revision < expected.revision || !coversFloor(record.floor, expected.floor);
      // A store that was put back may have a higher revision by now: it never has the number.
      const isOther = !record.incarnation.includes(expected.number);
      if (isSame && !isShorter && !isOlder && !isOther) {
        if (known?.era === expected.era) known = { ...known, ...higherOf(known, record) };
        raiseWal(expected, surelyKept(now));
        return undefined;
      }
      // An earlier timeline is an old primary that came back.
      const isRaised = isRaisedOver(expected.floor, record.floor) && (isSame || isLaterTimeline(now, expected));
      if (isRaised && known?.era === expected.era) learn(now, record);
      if (isRaised) return undefined;
      return isSame && !isShorter ? 'incarnation' : 'other_server';
    },
    /** A commit of these messages succeeded; it lies beyond the position. */
    committed(expected: KnownStore | undefined, place: ServerPlace, messages: readonly SlashableMessage[]): void {
      for (const message of messages) recorded = higherMarks(recorded, marksOf(message));
      raiseWal(expected, place.walPosition ?? 0);
    },
    /** Nothing that was lost can be signed again. */
    adopt: learn,
  };
}

/** After a crash the log may end before what was flushed. */
function surelyKept({ walFlushed }: ServerPlace): number {
  return Math.max(0, (walFlushed ?? 0) - LONGEST_PART_BYTES);
}

/** A record with the images of several pages is shorter. */
const LONGEST_PART_BYTES = 65_536;

function higherOf(known: KnownStore, record: StoreLineage): Pick<KnownStore, 'revision' | 'floor' | 'number'> {
  const { revision, floor } = record;
  return {
    revision: Math.max(known.revision, revision),
    floor: coversFloor(known.floor, floor) ? known.floor : floor,
    number: revision > known.revision ? latestNumber(record) : known.number,
  };
}

/** Empty, which every text includes, of a store that no signer has used. */
function latestNumber({ incarnation }: Pick<StoreLineage, 'incarnation'>): string {
  return readIncarnations(incarnation).held[0] ?? '';
}

/** What one of them does not say is no difference. */
function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  return isSameDatabase(one, other) && agree(one.timeline, other.timeline);
}

function isSameDatabase(one: ServerIdentity, other: ServerIdentity): boolean {
  return agree(one.systemIdentifier, other.systemIdentifier) && one.objects === other.objects;
}

function agree<Value>(one: Value | null, other: Value | null): boolean {
  return one === null || other === null || one === other;
}

/** The record names the later timeline only because a jump was made when it was first seen. */
function isLaterTimeline(now: ServerIdentity, known: ServerIdentity): boolean {
  return isSameDatabase(now, known) && (now.timeline ?? 0) > (known.timeline ?? 0);
}
