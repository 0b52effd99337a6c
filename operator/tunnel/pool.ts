// Verified connections to one enclave, kept for the next request: bounded, attested when made, and gone when their
// evidence has ended. One is kept warm, so that a request need not wait for a verification.

import type { Socket } from 'node:net';
import { jittered } from '../../common/flow/backoff.ts';
import { AttestationFailure } from '../attestation/attestation-failure.ts';
import type { AttestedConnection } from '../connect.ts';
import { Attempts, type AttemptsOptions, isBug, isOfClocks } from './attempts.ts';
import { type Lease, PoolError } from './lease.ts';
import { WaitingLine } from './waiting-line.ts';

export interface PoolOptions extends AttemptsOptions {
  /** Connects and verifies. @throws AttestationFailure, or whatever else keeps it from the enclave */
  readonly open: (signal: AbortSignal) => Promise<AttestedConnection>;
  readonly maxConnections: number;
  readonly maxWaiting: number;
  readonly connectTimeoutMs: number;
  /** An unused connection; below what the signer's side takes. All but one are closed then. */
  readonly idleMs: number;
  /** Uses the one for something that costs nothing. @returns whether it can be used again */
  readonly keepWarm: (socket: Socket) => Promise<boolean>;
  readonly now: () => number;
  /** Evidence did not verify, several times in a row: the pool is closed. Called once. */
  readonly onRefused: (failure: AttestationFailure) => void;
}

interface Connection {
  readonly socket: Socket;
  readonly expiresAt: number;
  readonly timers: readonly NodeJS.Timeout[];
  leased: boolean;
  readonly end: () => void;
  readonly rest: () => void;
}

/** So long before the evidence of the only connection ends, another one is made. */
const RENEW_AHEAD_MS = 60_000;
/** An enclave that closes each connection is not asked without a pause. */
const REPLACE_MS = 2000;
const MAX_TIMER_MS = 2 ** 31 - 1;

export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #connections = new Set<Connection>();
  readonly #waiting: WaitingLine;
  readonly #ended = new AbortController();
  readonly #attempts: Attempts;
  #started = false;
  #opening = 0;
  #later: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options);
    this.#waiting = new WaitingLine(options.maxWaiting);
  }

  /** An enclave that is unreachable, or whose clock differs, is tried on. @throws AttestationFailure */
  async start(): Promise<void> {
    await this.#open().catch((error: unknown) => {
      if (isBug(error) || (error instanceof AttestationFailure && !isOfClocks(error))) throw error;
    });
    this.#started = true;
  }

  acquire(signal: AbortSignal): Promise<Lease> {
    if (this.#ended.signal.aborted || signal.aborted) return Promise.reject(new PoolError('closed'));
    const idle = this.#takeIdle();
    if (idle !== undefined) return Promise.resolve(this.#lease(idle));
    const { condition } = this.#attempts;
    if (condition !== 'reachable') return Promise.reject(new PoolError(condition));
    if (this.#waiting.isFull) return Promise.reject(new PoolError('busy'));
    const lease = this.#waiting.join(signal);
    this.#openForWaiting();
    return lease;
  }

  close(): void {
    this.#ended.abort(); // and with it every connection
    clearTimeout(this.#later);
    for (const connection of this.#connections) this.#drop(connection);
    this.#waiting.rejectAll('closed');
  }

  #takeIdle(): Connection | undefined {
    // The one used last is the least likely to be closed by the other side just now.
    return [...this.#connections].findLast((connection) => !connection.leased && this.#isGood(connection));
  }

  #isGood({ socket, expiresAt }: AttestedConnection): boolean {
    return !socket.destroyed && socket.readable && socket.writable && this.#options.now() < expiresAt;
  }

  #lease(connection: Connection): Lease {
    const { socket } = connection;
    connection.leased = true;
    socket.setTimeout(0).off('timeout', connection.rest).off('data', connection.end);
    return {
      socket,
      release: (reusable) => {
        if (!connection.leased) return;
        connection.leased = false;
        if (reusable && this.#isGood(connection)) this.#offer(connection);
        else this.#drop(connection);
        this.#openForWaiting();
      },
    };
  }

  #offer(connection: Connection): void {
    const waiter = this.#waiting.next();
    if (waiter !== undefined) {
      waiter.resolve(this.#lease(connection));
      return;
    }
    // Bytes that arrive without a request would be taken for the answer of the next one.
    connection.socket.setTimeout(this.#options.idleMs).on('timeout', connection.rest).on('data', connection.end);
    this.#connections.delete(connection);
    this.#connections.add(connection); // at the end: used last
  }

  #openForWaiting(): void {
    const room = this.#options.maxConnections - this.#connections.size - this.#opening;
    const wanted = this.#waiting.size - this.#opening;
    for (let count = Math.min(room, wanted); count > 0; count--) this.#tryToOpen();
  }

  #tryToOpen(): void {
    this.#open().catch((error: unknown) => {
      if (isBug(error)) throw error; // ends the program; who else has to know has been told
    });
  }

  async #open(): Promise<void> {
    this.#opening += 1;
    const { round } = this.#attempts;
    const attempt = new AbortController();
    const signal = AbortSignal.any([this.#ended.signal, attempt.signal]);
    const timer = setTimeout(() => attempt.abort(), this.#options.connectTimeoutMs);
    try {
      const connection = await this.#options.open(signal);
      if (!this.#isGood(connection)) {
        connection.socket.destroy();
        throw new Error('the connection, or its evidence, ended while it was being verified');
      }
      this.#opening -= 1;
      this.#welcome(connection);
    } catch (error) {
      this.#opening -= 1;
      this.#fail(error, round);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #welcome({ socket, expiresAt }: AttestedConnection): void {
    if (this.#ended.signal.aborted) return void socket.destroy();
    this.#attempts.succeeded();
    clearTimeout(this.#later);
    this.#later = undefined;
    const lifeMs = Math.min(MAX_TIMER_MS, Math.max(0, expiresAt - this.#options.now()));
    const timers = [setTimeout(() => this.#expire(connection), lifeMs)];
    if (lifeMs > 2 * RENEW_AHEAD_MS) timers.push(setTimeout(() => this.#renew(connection), lifeMs - RENEW_AHEAD_MS));
    for (const timer of timers) timer.unref();
    const connection: Connection = {
      socket,
      expiresAt,
      timers,
      leased: false,
      end: () => this.#drop(connection),
      rest: () => this.#rest(connection),
    };
    this.#connections.add(connection);
    socket.once('close', () => this.#drop(connection));
    this.#offer(connection);
  }

  /** One that is in use ends with its request, which was sent while the evidence was good. */
  #expire(connection: Connection): void {
    if (!connection.leased) this.#drop(connection);
  }

  #renew(connection: Connection): void {
    const isOnly = this.#connections.size === 1 && this.#connections.has(connection) && this.#opening === 0;
    if (isOnly && this.#options.maxConnections > 1 && this.#attempts.condition === 'reachable') this.#tryToOpen();
  }

  /** The last one is used for something, so that neither side closes it; the others have had their time. */
  #rest(connection: Connection): void {
    const others = [...this.#connections].filter((other) => other !== connection && this.#isGood(other));
    if (others.length > 0 || !this.#isGood(connection)) return void this.#drop(connection);
    const { release } = this.#lease(connection);
    this.#options.keepWarm(connection.socket).then(release, () => release(false));
  }

  #drop(connection: Connection): void {
    for (const timer of connection.timers) clearTimeout(timer);
    this.#connections.delete(connection);
    connection.socket.destroy();
    const isLast = this.#connections.size + this.#opening === 0 && this.#attempts.condition === 'reachable';
    if (isLast) this.#tryLater(jittered(REPLACE_MS));
  }

  #fail(error: unknown, round: number): void {
    if (this.#ended.signal.aborted) return;
    if (!this.#started && error instanceof AttestationFailure && !isOfClocks(error)) return; // start() says so
    if (!this.#attempts.failed(error, round)) {
      this.close();
      if (error instanceof AttestationFailure) this.#options.onRefused(error);
      return;
    }
    const { condition } = this.#attempts;
    if (condition === 'reachable') return void this.#openForWaiting(); // another attempt has come out well since
    this.#waiting.rejectAll(condition);
    this.#tryLater(this.#attempts.pauseMs());
  }

  #tryLater(afterMs: number): void {
    if (this.#ended.signal.aborted) return;
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#tryToOpen();
    }, afterMs);
  }
}
