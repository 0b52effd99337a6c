// When the queue is full, the address with the most places loses its newest.

import { SignerError } from '../api/errors.ts';

export interface FairQueueLimits {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

interface Waiter {
  readonly from: string;
  begin(): void;
  refuse(reason: 'overloaded' | 'client_closed'): void;
}

export class FairQueue {
  readonly #limits: FairQueueLimits;
  readonly #waiting = new Map<string, Waiter[]>();
  #waitingCount = 0;
  #running = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /** @param from whose turn it is; all without an address share one @throws `overloaded`, `client_closed` */
  async run<T>(from: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limits.maxRunning) await this.#wait(from, signal);
    else this.#running += 1;
    try {
      if (signal.aborted) throw new SignerError('client_closed');
      return await work();
    } finally {
      this.#running -= 1;
      this.#beginNext();
    }
  }

  #wait(from: string, signal: AbortSignal): Promise<void> {
    const own = this.#waiting.get(from) ?? [];
    if (this.#waitingCount >= this.#limits.maxWaiting && !this.#makeRoom(own.length + 1)) {
      return Promise.reject(new SignerError('overloaded'));
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => this.#leave(waiter, 'client_closed');
    const timer = setTimeout(() => this.#leave(waiter, 'overloaded'), this.#limits.maxWaitMs);
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    const waiter: Waiter = {
      from,
      begin() {
        settle();
        resolve();
      },
      refuse(reason) {
        settle();
        reject(new SignerError(reason));
      },
    };
    signal.addEventListener('abort', onAbort, { once: true });
    own.push(waiter);
    this.#waiting.set(from, own);
    this.#waitingCount += 1;
    return promise;
  }

  #beginNext(): void {
    const [next] = this.#waiting;
    if (next === undefined || this.#running >= this.#limits.maxRunning) return;
    const [from, waiters] = next;
    const waiter = waiters.shift();
    this.#waiting.delete(from);
    if (waiters.length > 0) this.#waiting.set(from, waiters);
    if (waiter === undefined) return;
    this.#waitingCount -= 1;
    this.#running += 1;
    waiter.begin();
  }

  /**
   * @param share the places that the caller would then hold: another caller loses its newest place only when it holds
   * more
   */
  #makeRoom(share: number): boolean {
    let most: Waiter[] = [];
    for (const waiters of this.#waiting.values()) if (waiters.length > most.length) most = waiters;
    const newest = most.at(-1);
    if (newest === undefined || most.length <= share) return false;
    this.#leave(newest, 'overloaded');
    return true;
  }

  #leave(waiter: Waiter, reason: Parameters<Waiter['refuse']>[0]): void {
    const waiters = this.#waiting.get(waiter.from) ?? [];
    const at = waiters.indexOf(waiter);
    if (at === -1) return; // it had its turn
    waiters.splice(at, 1);
    if (waiters.length === 0) this.#waiting.delete(waiter.from);
    this.#waitingCount -= 1;
    waiter.refuse(reason);
  }
}
