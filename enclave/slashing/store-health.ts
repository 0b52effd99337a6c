// Says whether the slashing store answers, from its last answer or failure, and logs each change once. It decides
// nothing: the signer still asks a store that is down, and answers 503 when the store gives no answer.

import type { Clock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { SlashingBackend } from './types.ts';

export interface SlashingHealth {
  readonly status: 'up' | 'down' | 'unopened';
  /** Wall time of the answer or failure this comes from, milliseconds since the Unix epoch. */
  readonly since: number;
}

export class StoreHealth {
  readonly #backend: SlashingBackend;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #unopened: boolean;
  #now: SlashingHealth;

  /** @param unopened the store is left alone: nothing can be said of it */
  constructor(backend: SlashingBackend, unopened: boolean, { clock, log }: { clock: Clock; log: Log }) {
    this.#backend = backend;
    this.#clock = clock;
    this.#log = log;
    this.#unopened = unopened;
    this.#now = { status: unopened ? 'unopened' : 'up', since: clock.now() };
  }

  get now(): SlashingHealth {
    return this.#now;
  }

  /** Ask the store now; resolves with the new health and never rejects. */
  async ask(signal: AbortSignal): Promise<SlashingHealth> {
    if (this.#unopened) return this.#now;
    try {
      await this.#backend.checkHealth(signal);
      this.heard('up');
    } catch (error) {
      this.heard('down', error);
    }
    return this.#now;
  }

  /** The store answered, or failed for this cause. */
  heard(status: 'up' | 'down', cause?: unknown): void {
    if (status !== this.#now.status) {
      if (status === 'up') this.#log.info({ backend: this.#backend.name }, 'slashing protection is available again');
      else this.#log.error({ backend: this.#backend.name, err: cause }, 'slashing protection is unavailable');
    }
    this.#now = { status, since: this.#clock.now() };
  }
}
