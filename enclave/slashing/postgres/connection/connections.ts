// The pool of connections to PostgreSQL, and the one place that imports `pg`. Every wait has an end: connecting,
// waiting for a connection, for a lock, for a statement, for an answer. Whatever goes wrong on a connection, that
// connection is closed, so that no transaction is carried on in doubt, and the caller gets `slashing_unavailable`.
// Nothing of the environment (PGHOST, PGPASSWORD, ~/.pgpass …) is read: the configuration has one source.

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { Client, type ClientConfig, type CustomTypesConfig, Pool, type PoolClient, types } from 'pg';
import type { Clock } from '../../../../observe/clock.ts';
import type { Log } from '../../../../observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import { type PostgresAddress, tlsOptions } from './address.ts';
import { DatabaseSocket, endInTime } from './sockets.ts';

export interface PostgresConnectionOptions {
  readonly address: PostgresAddress;
  /** `anti_slashing.pool_size`. */
  readonly poolSize: number;
  /** `anti_slashing.force_ipv4`: names are looked up for IPv4 addresses only. */
  readonly forceIpv4: boolean;
  readonly timeouts?: Partial<PostgresTimeouts>;
}

/** Milliseconds. */
export interface PostgresTimeouts {
  /** To connect, and to wait for a free connection. */
  readonly connectMs: number;
  /** For a lock on a row, held by another signer's batch. */
  readonly lockMs: number;
  /** For one statement, on the server. */
  readonly statementMs: number;
  /** For the answer to one statement: the server or the network may have gone silent. */
  readonly answerMs: number;
}

export interface UnhurriedSession {
  readonly connection: Connection;
  close(): Promise<void>;
  /** What to throw for an error of this connection. */
  fault(error: unknown): SignerError;
}

export type Connection = Pick<Client, 'query'>;

const TIMEOUTS: PostgresTimeouts = { connectMs: 3_000, lockMs: 2_000, statementMs: 4_000, answerMs: 5_000 };
/** Migrations and imports lock more, read more, and wait for their source. */
const UNHURRIED_TIMEOUTS: PostgresTimeouts = { ...TIMEOUTS, lockMs: 60_000, statementMs: 60_000, answerMs: 65_000 };
/** While connecting fails, attempts are this far apart; what is asked in between is refused at once. */
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1_000;
const IDLE_MS = 60_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
/** Until a server has answered a connection's goodbye: one that is gone without a word never does. */
const END_WAIT_MS = 2_000;

export class PostgresConnections {
  readonly #pool: Pool;
  readonly #config: ClientConfig;
  readonly #newSocket: () => Socket;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #sessions = new Set<() => Promise<void>>();
  /** Every socket that the pool has open. */
  readonly #sockets = new Set<Socket>();
  #retryDelayMs = 0;
  #retryAt = 0;

  /** Connects to nothing yet. Throws when the file of root certificates cannot be read. */
  constructor(options: PostgresConnectionOptions, { log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
    this.#newSocket = () => new DatabaseSocket(options.forceIpv4);
    this.#config = clientConfig(options);
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
    // A connection that breaks answers its queries with the error; without a listener it would end the process too.
    this.#pool.on('connect', (client) => void client.on('error', () => undefined));
    this.#pool.on('error', (error) => log.warn(facts(error), 'an idle connection to the slashing database broke'));
  }

  /**
   * Run `work` on a connection. When it rejects, the connection is closed, and with it the transaction it was in.
   * Rejects with `slashing_unavailable`, or with the SignerError that `work` threw.
   */
  async use<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const client = await this.#acquire();
    let result: Result;
    try {
      result = await work(client);
    } catch (error) {
      client.release(true);
      throw this.#unavailable(error);
    }
    client.release();
    return result;
  }

  /** Run `work` on a connection outside the pool, with time for migrations and imports. Rejects as `use` does. */
  async useUnhurried<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const session = await this.openUnhurried();
    try {
      return await work(session.connection);
    } catch (error) {
      throw session.fault(error);
    } finally {
      await session.close();
    }
  }

  /** A connection outside the pool, which the caller closes. */
  async openUnhurried(): Promise<UnhurriedSession> {
    if (this.#pool.ending) throw new SignerError('slashing_unavailable');
    const socket = this.#newSocket();
    const client = new Client({ ...this.#config, stream: () => socket, ...timeoutSettings(UNHURRIED_TIMEOUTS) });
    client.on('error', () => undefined);
    const close = async () => {
      this.#sessions.delete(close);
      await endInTime(
        client.end().catch(() => undefined),
        END_WAIT_MS,
        [socket],
      );
    };
    this.#sessions.add(close);
    // `pg` says nothing to whoever waits for a connection that is ended before it is made.
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => undefined);
    client.once('end', () => ended.reject(new Error('the connection was ended')));
    try {
      await Promise.race([client.connect(), ended.promise]);
    } catch (error) {
      await close();
      throw this.#unavailable(error);
    }
    return { connection: client, close, fault: (error) => this.#unavailable(error) };
  }

  /**
   * Waits for the connections of the pool that are in use; the unhurried ones are ended.
   * @param waitMs then what still is open is cut; until then a server that is gone without a word is waited for
   */
  async close(waitMs = END_WAIT_MS): Promise<void> {
    const sessions = [...this.#sessions].map((end) => end());
    if (!this.#pool.ending) await endInTime(this.#pool.end(), waitMs, this.#sockets);
    await Promise.all(sessions);
  }

  async #acquire(): Promise<PoolClient> {
    if (this.#clock.monotonic() < this.#retryAt) throw new SignerError('slashing_unavailable');
    try {
      const client = await this.#pool.connect();
      this.#retryDelayMs = 0;
      this.#retryAt = 0;
      return client;
    } catch (error) {
      this.#retryDelayMs = Math.min(Math.max(this.#retryDelayMs * 2, FIRST_RETRY_MS), LAST_RETRY_MS);
      this.#retryAt = this.#clock.monotonic() + this.#retryDelayMs;
      throw this.#unavailable(error);
    }
  }

  #unavailable(error: unknown): SignerError {
    if (error instanceof SignerError) return error;
    this.#log.warn(facts(error), 'the slashing database failed a request');
    return new SignerError('slashing_unavailable', { detail: facts(error) });
  }
}

/**
 * Ask for the commit, and believe only the word COMMIT: a transaction that had failed answers ROLLBACK, not an error.
 */
export async function commit(connection: Connection): Promise<void> {
  const { command } = await connection.query('COMMIT');
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back');
}

function clientConfig({ address, timeouts }: PostgresConnectionOptions): ClientConfig {
  const roots =
    address.rootCertificateFile === undefined ? undefined : readFileSync(address.rootCertificateFile, 'utf8');
  return {
    host: address.host,
    port: address.port,
    user: address.user,
    // As a function it is never empty for `pg`, which would look for a password in the environment.
    password: () => address.password,
    database: address.database,
    ssl: tlsOptions(address.tls, roots),
    sslnegotiation: 'postgres',
    types: columnTypes,
    pipeline: true,
    application_name: 'strongroom',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    ...timeoutSettings({ ...TIMEOUTS, ...timeouts }),
  };
}

function timeoutSettings({ connectMs, lockMs, statementMs, answerMs }: PostgresTimeouts): ClientConfig {
  return {
    connectionTimeoutMillis: connectMs,
    lock_timeout: lockMs,
    statement_timeout: statementMs,
    // A session that stops in the middle of a transaction must not hold its locks for longer than a statement may take.
    idle_in_transaction_session_timeout: statementMs,
    query_timeout: answerMs,
  };
}

/** `bigint` as a number; one that is too large becomes unsafe and fails the integrity code of its row. */
const columnTypes: CustomTypesConfig = {
  getTypeParser: (id, format) => (Number(id) === types.builtins.INT8 ? Number : types.getTypeParser(id, format)),
};

/** What the log may know of an error of `pg`: its objects carry connections, and those carry settings. */
function facts(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: 'not an error object' };
  return { error: error.message, ...('code' in error ? { code: error.code } : {}) };
}
