// The pool of connections to PostgreSQL, and the one place that imports `pg`. Every wait has an end. Whatever goes
// wrong on a connection, it is closed: no transaction is carried on in doubt. Nothing of the environment is read.

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { Client, type ClientConfig, type CustomTypesConfig, Pool, type PoolClient, types } from 'pg';
import { inTime } from '../../../../common/flow/in-time.ts';
import type { Clock } from '../../../../common/observe/clock.ts';
import type { Log } from '../../../../common/observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import type { AuthoritiesOf } from '../../../tee/authorities.ts';
import { type PostgresAddress, tlsOptions } from './address.ts';

export interface PostgresConnectionOptions {
  readonly address: PostgresAddress;
  readonly poolSize: number;
  readonly forceIpv4: boolean;
  /** Where the URL names no file; the process-wide roots unless given. */
  readonly authorities?: AuthoritiesOf | undefined;
  readonly timeouts?: Partial<PostgresTimeouts>;
}

/** Milliseconds. */
interface PostgresTimeouts {
  readonly connectMs: number;
  /** For a lock on a row, held by another signer's batch. */
  readonly lockMs: number;
  readonly statementMs: number;
  /** The server or the network may have gone silent. */
  readonly answerMs: number;
}

export interface UnhurriedSession {
  readonly connection: Connection;
  close(): Promise<void>;
  fault(error: unknown): SignerError;
}

export type Connection = Pick<Client, 'query'>;

const TIMEOUTS: PostgresTimeouts = { connectMs: 3_000, lockMs: 2_000, statementMs: 4_000, answerMs: 5_000 };
const UNHURRIED_TIMEOUTS = { lockMs: 60_000, statementMs: 60_000, answerMs: 65_000 };
/** What is asked between two attempts is refused at once. */
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1_000;
const IDLE_MS = 60_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
/** A server that is gone never answers a goodbye. */
const END_WAIT_MS = 2_000;

export class PostgresConnections {
  readonly #pool: Pool;
  readonly #config: ClientConfig;
  readonly #newSocket: () => Socket;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #sessions = new Set<() => Promise<void>>();
  readonly #sockets = new Set<Socket>();
  /** Of requests that wait for a connection: a pool that ends forgets them until their time is over. */
  readonly #waiting = new Set<(error: SignerError) => void>();
  /** When each connection that is idle now has answered last, and when one was silent last: a network may drop all. */
  readonly #answeredAt = new WeakMap<PoolClient, number>();
  #silentAt = Number.NEGATIVE_INFINITY;
  /** The process of the server that a session has. */
  readonly #processes = new WeakMap<Connection, unknown>();
  readonly #limits: PostgresTimeouts;
  /** A pooler was seen to give each connection a session of its own, and nothing has failed since. */
  #hasSessions = false;
  #retryDelayMs = 0;
  #retryAt = 0;

  /** Connects to nothing yet. @throws when the file of root certificates cannot be read */
  constructor(options: PostgresConnectionOptions, { log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
    this.#newSocket = () => databaseSocket(options.forceIpv4);
    this.#limits = { ...TIMEOUTS, ...options.timeouts };
    this.#config = clientConfig(options, this.#limits);
    if (options.address.tls === 'require') {
      log.warn({}, 'sslmode=require encrypts but does not check who the database is: prefer verify-full');
    }
    const stream = (): Socket => {
      const socket = this.#newSocket();
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      return socket;
    };
    this.#pool = new Pool({ ...this.#config, stream, max: options.poolSize, idleTimeoutMillis: IDLE_MS });
    this.#pool.on('connect', listenTo);
    this.#pool.on('error', (error) => log.warn(facts(error), 'an idle connection to the slashing database broke'));
  }

  /** When `work` rejects, the connection is closed, and with it the transaction it was in. */
  async use<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const client = await this.#acquire();
    let result: Result;
    try {
      if (!this.#answeredAt.has(client)) await this.#beginSession(client, this.#limits);
      result = await work(client);
    } catch (error) {
      if (isSilence(error)) this.#silentAt = this.#clock.monotonic();
      client.release(true);
      throw this.#failed(client, error);
    }
    this.#answeredAt.set(client, this.#clock.monotonic());
    client.release();
    return result;
  }

  async useUnhurried<Result>(work: (connection: Connection) => Promise<Result>, isProbe = false): Promise<Result> {
    const session = await this.openUnhurried(isProbe);
    try {
      return await work(session.connection);
    } catch (error) {
      throw session.fault(error);
    } finally {
      await session.close();
    }
  }

  /** @param isProbe as it is without limits, which are not to stay with a pooler's process */
  async openUnhurried(isProbe = false): Promise<UnhurriedSession> {
    if (this.#pool.ending) throw new SignerError('slashing_unavailable');
    const socket = this.#newSocket();
    const patience = isProbe ? {} : { query_timeout: UNHURRIED_TIMEOUTS.answerMs };
    const client = new Client({ ...this.#config, ...patience, stream: () => socket });
    listenTo(client);
    const close = async () => {
      this.#sessions.delete(close);
      await endInTime(
        client.end().catch(() => undefined),
        END_WAIT_MS,
        [socket],
      );
    };
    this.#sessions.add(close);
    // `pg` never answers a caller that waits for a connection when it is ended before it is made.
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => undefined);
    client.once('end', () => ended.reject(new Error('the connection was ended')));
    try {
      await Promise.race([client.connect(), ended.promise]);
      if (!isProbe) await this.#beginSession(client, UNHURRIED_TIMEOUTS);
    } catch (error) {
      await close();
      throw this.#unavailable(error);
    }
    return { connection: client, close, fault: (error) => this.#failed(client, error) };
  }

  /**
   * Statements are prepared and limits are set in a server process: a pooler that gives each transaction another one
   * loses them. The limits come only now, because poolers refuse parameters of the start that they do not know.
   */
  async #beginSession(
    connection: Connection,
    { lockMs, statementMs }: Omit<PostgresTimeouts, 'connectMs'>,
  ): Promise<void> {
    const own = await processOf(connection);
    // Another than the connection was told at its start: a pooler told it.
    if (own !== Reflect.get(connection, 'processID')) {
      if (!this.#hasSessions) await this.useUnhurried((other) => confirmOwn(own, connection, other), true);
      this.#hasSessions = true;
      await connection.query('DISCARD ALL'); // what the last client left, as the table of an import
    }
    await connection.query(SET_LIMITS, [lockMs, statementMs]);
    this.#processes.set(connection, own);
  }

  /** @param waitMs for the connections in use; what still is open then is cut */
  async close(waitMs = END_WAIT_MS): Promise<void> {
    for (const refuse of this.#waiting) refuse(new SignerError('slashing_unavailable'));
    const sessions = [...this.#sessions].map((end) => end());
    if (!this.#pool.ending) await endInTime(this.#pool.end(), waitMs, this.#sockets);
    await Promise.all(sessions);
  }

  async #acquire(): Promise<PoolClient> {
    if (this.#clock.monotonic() < this.#retryAt) throw new SignerError('slashing_unavailable');
    try {
      const client = await this.#connectionOfPool();
      this.#retryDelayMs = 0;
      this.#retryAt = 0;
      return client;
    } catch (error) {
      this.#retryDelayMs = Math.min(Math.max(this.#retryDelayMs * 2, FIRST_RETRY_MS), LAST_RETRY_MS);
      this.#retryAt = this.#clock.monotonic() + this.#retryDelayMs;
      throw this.#unavailable(error);
    }
  }

  #connectionOfPool(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      const refuse = (error: SignerError): void => {
        this.#waiting.delete(refuse);
        reject(error);
      };
      this.#waiting.add(refuse);
      const take = (client: PoolClient): void => {
        const answeredAt = this.#answeredAt.get(client) ?? Number.POSITIVE_INFINITY; // made for this request
        if (!this.#waiting.has(refuse)) client.release();
        else if (answeredAt <= this.#silentAt) {
          client.release(true);
          this.#pool.connect().then(take, refuse);
        } else {
          this.#waiting.delete(refuse);
          resolve(client);
        }
      };
      this.#pool.connect().then(take, refuse);
    });
  }

  #failed(connection: Connection, error: unknown): SignerError {
    const process = this.#processes.get(connection);
    if (isSilence(error) && process !== undefined) {
      const end = (other: Connection) => other.query(END_WAIT_FOR_STANDBY, [process]);
      void this.useUnhurried(end, true).catch(() => undefined);
    }
    return this.#unavailable(error);
  }

  #unavailable(error: unknown): SignerError {
    if (error instanceof SignerError) return error;
    this.#hasSessions = false;
    this.#log.warn(facts(error), 'the slashing database failed a request');
    return new SignerError('slashing_unavailable', { detail: facts(error) });
  }
}

/** A transaction that had failed answers ROLLBACK, not an error. */
export async function commit(connection: Connection): Promise<void> {
  const { command } = await connection.query('COMMIT');
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back');
  if (notReplicated.has(connection)) throw new Error('the wait of a commit for its standby was canceled');
}

/** Where an administrator canceled it: the server answers COMMIT with a warning, and a failover loses the commit. */
const notReplicated = new WeakSet<Connection>();

/** A warning is translated, but not the name of the function that gave it. */
function listenTo(client: Client | PoolClient): void {
  // A connection that breaks answers its queries; without a listener the error would end the process too.
  client.on('error', () => undefined);
  client.on('notice', ({ routine }) => {
    if (routine === 'SyncRepWaitForLSN') notReplicated.add(client);
  });
}

/** Its name stands for its text alone: another version's statement in the same session never runs in its place. */
export function prepared<Row extends object>(connection: Connection, text: string, values: readonly unknown[] = []) {
  return connection.query<Row>({ name: hash('sha256', text, 'base64url'), text, values: [...values] });
}

function clientConfig({ address, authorities }: PostgresConnectionOptions, limits: PostgresTimeouts): ClientConfig {
  const { rootCertificateFile: file, host } = address;
  const roots = file === undefined ? authorities?.(host) : [readFileSync(file, 'utf8')];
  return {
    host: address.host,
    port: address.port,
    user: address.user,
    // Never empty for `pg`, which would look for a password in the environment.
    password: () => address.password,
    database: address.database,
    ssl: tlsOptions(address.tls, roots),
    sslnegotiation: 'postgres',
    types: columnTypes,
    pipeline: true,
    application_name: 'strongroom',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    connectionTimeoutMillis: limits.connectMs,
    query_timeout: limits.answerMs,
  };
}

// A session that stops in the middle of a transaction must not hold its locks: the last one.
const SET_LIMITS = `
  SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', $2, false),
         set_config('idle_in_transaction_session_timeout', $2, false)`;

// A commit whose standby is away waits for it, and its process does not notice that its client is gone: without this,
// signers that try again take every connection that the server has.
const END_WAIT_FOR_STANDBY = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'`;

const POOLED = {
  hint:
    'the slashing database is behind a pooler that gives each transaction another session (PgBouncer: pool_mode = ' +
    'transaction or statement): connect to the database itself, or set pool_mode = session ' +
    '(docs/guides/postgres.md#poolers)',
};
/** A pooler with other clients may give the same process again by chance. */
const ROUNDS = 8;

/** Some poolers give what came back last, others take turns: two questions in a row, and one in between, tell both. */
async function confirmOwn(own: unknown, connection: Connection, other: Connection): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const isTaken = (await processOf(other)) === own;
    const answers = [await processOf(connection), await processOf(connection)];
    if (isTaken || answers.some((process) => process !== own)) throw new SignerError('slashing_unavailable', POOLED);
  }
}

async function processOf(connection: Connection): Promise<unknown> {
  const { rows } = await connection.query('SELECT pg_backend_pid() AS process');
  return rows[0]?.process;
}

/** One that is too large becomes unsafe and fails the integrity code of its row. */
const columnTypes: CustomTypesConfig = {
  getTypeParser: (id, format) => (Number(id) === types.builtins.INT8 ? Number : types.getTypeParser(id, format)),
};

/** Its own limit of a query (answerMs): the connection stands, and nothing comes. */
function isSilence(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

/** The objects of `pg` carry connections, and those carry settings. */
function facts(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: 'not an error object' };
  return { error: error.message, ...('code' in error ? { code: error.code } : {}) };
}

/** `pg` connects it to a port of a host, and says no family. */
function databaseSocket(forceIpv4: boolean): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket);
  const family = forceIpv4 ? { family: 4 } : {};
  return Object.assign(socket, { connect: (port: number, host: string) => connect({ port, host, ...family }) });
}

async function endInTime(work: Promise<void>, waitMs: number, sockets: Iterable<Socket>): Promise<void> {
  await inTime(work, waitMs, () => {
    for (const socket of sockets) socket.destroy();
    return work;
  });
}

// The key of an advisory lock is any 64-bit number that no other program uses; ours are eight letters in ASCII.

/** Whatever the database or the role is set to. */
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on';

/** "strongro": while the schema is brought up to date. */
export const MIGRATION_LOCK = 0x7374_726f_6e67_726fn;

/** "strongim": by an import from its first locked row to its commit. */
export const IMPORT_LOCK = 0x7374_726f_6e67_696dn;

/** "strongju": shared by every batch; a jump has it alone. */
const JUMP_LOCK = 0x7374_726f_6e67_6a75n;

/** A statement of its own: each sees what was committed before it began. */
export const BEGIN_BATCH = `${BEGIN}; SELECT pg_advisory_xact_lock_shared(${JUMP_LOCK})`;

export const BEGIN_IMPORT = `${BEGIN}; SELECT pg_advisory_xact_lock(${IMPORT_LOCK})`;

export const BEGIN_JUMP = `${BEGIN}; SELECT pg_advisory_xact_lock(${JUMP_LOCK})`;
