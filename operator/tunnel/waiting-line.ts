// Requests that wait for a connection, first come first served, bounded in number. Alone, because the pool is about
// connections and this about requests.

import { type Lease, PoolError } from './lease.ts';

interface Waiter {
  resolve(lease: Lease): void;
  reject(error: PoolError): void;
}

export class WaitingLine {
  readonly #most: number;
  readonly #waiters = new Set<Waiter>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#waiters.size;
  }

  get isFull(): boolean {
    return this.#waiters.size >= this.#most;
  }

  /** Not when the line is full. @param signal gives up waiting @throws PoolError: what it is rejected with */
  join(signal: AbortSignal): Promise<Lease> {
    const { promise, resolve, reject } = Promise.withResolvers<Lease>();
    const waiter: Waiter = { resolve, reject };
    this.#waiters.add(waiter);
    signal.addEventListener('abort', () => this.#waiters.delete(waiter) && reject(new PoolError('closed')), {
      once: true,
    });
    return promise;
  }

  next(): Waiter | undefined {
    const [waiter] = this.#waiters;
    if (waiter !== undefined) this.#waiters.delete(waiter);
    return waiter;
  }

  rejectAll(code: PoolError['code']): void {
    for (const { reject } of this.#waiters) reject(new PoolError(code));
    this.#waiters.clear();
  }
}
