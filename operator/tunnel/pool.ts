// Verified connections to one enclave, kept for the next request: bounded in number and in who waits for one, each attested when it is made
// and gone when its evidence has ended. Evidence that does not verify ends the pool for good; an enclave that is merely not there is tried
// again until it is, and meanwhile whoever asks hears so at once.

import type { Socket } from 'node:net';
import { AttestationFailure } from '../attestation/attestation-failure.ts';
import type { AttestedConnection } from '../connect.ts';

export interface PoolOptions {
  /** Connects and verifies. @throws AttestationFailure, or whatever else keeps it from the enclave */
  readonly open: (signal: AbortSignal) => Promise<AttestedConnection>;
  readonly maxConnections: number;
  /** Requests that wait for a connection; the next one is refused. */
  readonly maxWaiting: number;
  /** An attempt, from the first packet to the verdict. */
  readonly connectTimeoutMs: number;
  /** An unused connection; below what the signer's side takes. */
  readonly idleMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onUnreachable: (error: unknown) => void;
  readonly onReachable: () => void;
  /** Evidence did not verify: the pool is closed. Called once. */
  readonly onRefused: (failure: AttestationFailure) => void;
}

/** A connection for one request. */
export interface Lease {
  readonly socket: Socket;
  /** @param reusable the answer was read to its end, and nothing is left of the request */
  release(reusable: boolean): void;
}

export class PoolError extends Error {
  readonly code: 'unreachable' | 'busy' | 'closed';

  constructor(code: PoolError['code']) {
    super(`no connection: ${code}`);
    this.name = 'PoolError';
    this.code = code;
  }
}

interface Connection {
  readonly socket: Socket;
  readonly expiresAt: number;
  readonly expiry: NodeJS.Timeout;
  leased: boolean;
  /** Bytes, or silence, while nobody uses it. */
  readonly end: () => void;
}

interface Waiter {
  resolve(lease: Lease): void;
  reject(error: PoolError): void;
}

const RETRY_MS = { first: 250, most: 2000 } as const;
const MAX_TIMER_MS = 2 ** 31 - 1;

export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #connections = new Set<Connection>();
  readonly #waiting = new Set<Waiter>();
  readonly #ended = new AbortController();
  #opening = 0;
  #reachable = true;
  /** The next attempt, while it is not. */
  #retry: NodeJS.Timeout | undefined;
  #retryMs: number = RETRY_MS.first;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** The first connection. An enclave that is unreachable is tried on. @throws AttestationFailure */
  async start(): Promise<void> {
    await this.#open().catch((error: unknown) => {
      if (error instanceof AttestationFailure) throw error;
    });
  }

  /** @param signal gives up waiting @throws PoolError; AttestationFailure */
  acquire(signal: AbortSignal): Promise<Lease> {
    if (this.#ended.signal.aborted || signal.aborted) return Promise.reject(new PoolError('closed'));
    const idle = this.#takeIdle();
    if (idle !== undefined) return Promise.resolve(this.#lease(idle));
    if (!this.#reachable) return Promise.reject(new PoolError('unreachable'));
    if (this.#waiting.size >= this.#options.maxWaiting) return Promise.reject(new PoolError('busy'));
    const { promise, resolve, reject } = Promise.withResolvers<Lease>();
    const waiter: Waiter = { resolve, reject };
    this.#waiting.add(waiter);
    signal.addEventListener('abort', () => this.#waiting.delete(waiter) && reject(new PoolError('closed')), {
      once: true,
    });
    this.#openForWaiting();
    return promise;
  }

  close(): void {
    this.#ended.abort(); // and with it every connection
    clearTimeout(this.#retry);
    for (const connection of this.#connections) this.#drop(connection);
    this.#rejectWaiting('closed');
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
    socket.setTimeout(0).off('timeout', connection.end).off('data', connection.end);
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

  /** To who waits longest, or for later. */
  #offer(connection: Connection): void {
    const [waiter] = this.#waiting;
    if (waiter !== undefined) {
      this.#waiting.delete(waiter);
      waiter.resolve(this.#lease(connection));
      return;
    }
    // Bytes that nobody asked for would be taken for an answer.
    connection.socket.setTimeout(this.#options.idleMs).on('timeout', connection.end).on('data', connection.end);
    this.#connections.delete(connection);
    this.#connections.add(connection); // at the end: used last
  }

  #openForWaiting(): void {
    const room = this.#options.maxConnections - this.#connections.size - this.#opening;
    const wanted = this.#waiting.size - this.#opening;
    for (let count = Math.min(room, wanted); count > 0; count--) this.#tryToOpen();
  }

  #tryToOpen(): void {
    this.#open().catch(() => undefined); // who has to know has been told
  }

  async #open(): Promise<void> {
    this.#opening += 1;
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
      this.#fail(error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #welcome({ socket, expiresAt }: AttestedConnection): void {
    if (this.#ended.signal.aborted) return void socket.destroy();
    if (!this.#reachable) this.#options.onReachable();
    this.#reachable = true;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#retryMs = RETRY_MS.first;
    const endMs = Math.min(MAX_TIMER_MS, Math.max(0, expiresAt - this.#options.now()));
    const expiry = setTimeout(() => this.#expire(connection), endMs);
    expiry.unref();
    const connection: Connection = { socket, expiresAt, expiry, leased: false, end: () => this.#drop(connection) };
    this.#connections.add(connection);
    socket.once('close', () => this.#drop(connection));
    this.#offer(connection);
  }

  /** One that is in use ends with its request, which was sent while the evidence was good. */
  #expire(connection: Connection): void {
    if (!connection.leased) this.#drop(connection);
  }

  #drop(connection: Connection): void {
    clearTimeout(connection.expiry);
    this.#connections.delete(connection);
    connection.socket.destroy();
  }

  #fail(error: unknown): void {
    if (this.#ended.signal.aborted) return;
    if (error instanceof AttestationFailure) {
      this.close();
      this.#options.onRefused(error);
      return;
    }
    this.#rejectWaiting('unreachable');
    if (this.#reachable) this.#options.onUnreachable(error);
    this.#reachable = false;
    this.#retry ??= setTimeout(() => this.#tryAgain(), this.#retryMs * (0.5 + Math.random() / 2)); // jitter
  }

  #tryAgain(): void {
    this.#retry = undefined;
    this.#retryMs = Math.min(RETRY_MS.most, this.#retryMs * 2);
    this.#tryToOpen();
  }

  #rejectWaiting(code: PoolError['code']): void {
    for (const { reject } of this.#waiting) reject(new PoolError(code));
    this.#waiting.clear();
  }
}
