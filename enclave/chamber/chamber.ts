// The chamber: Unsealed or Sealed, and never from Sealed back (specification/custody.md#sealing). It owns the master
// key and tells every part that holds a secret to forget it. The break-glass latch is written before this replica
// seals, so that a seal that was answered holds for every replica and across restarts.

import type { Clock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { ChamberState } from '../api/chamber.ts';
import { SignerError } from '../api/errors.ts';
import type { MasterKey } from './master-key.ts';
import type { Latch } from './state-rows.ts';
import type { StateTable } from './state-table.ts';

export interface ChamberParts {
  readonly table: Pick<StateTable, 'writeLatch'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class Chamber {
  readonly #parts: ChamberParts;
  readonly #wipes: (() => void)[] = [];
  #masterKey: MasterKey | undefined;
  #latch: Latch | undefined;

  /** Unsealed with a master key, Sealed with the latch that was found. */
  constructor(found: { readonly masterKey: MasterKey } | { readonly latch: Latch }, parts: ChamberParts) {
    this.#parts = parts;
    if ('latch' in found) this.#latch = found.latch;
    else this.#masterKey = found.masterKey;
  }

  get state(): ChamberState {
    return this.#masterKey === undefined ? 'Sealed' : 'Unsealed';
  }

  /** The latch that sealed this replica. */
  get latch(): Latch | undefined {
    return this.#latch;
  }

  /** @throws SignerError `master_key_unavailable` while sealed */
  get masterKey(): MasterKey {
    if (this.#masterKey === undefined) throw new SignerError('master_key_unavailable');
    return this.#masterKey;
  }

  /** Called once, when the chamber seals; at once when it is sealed already. It must wipe and not throw. */
  onSealed(wipe: () => void): void {
    if (this.state === 'Sealed') wipe();
    else this.#wipes.push(wipe);
  }

  /**
   * Break-glass: the latch first, then this replica; the others see the latch. Sealing again answers the first latch.
   * @throws SignerError `state_stale` when the latch could not be written; nothing is sealed then, and the call can be
   * repeated
   */
  async seal(reason: string | null, accessor: string): Promise<Latch> {
    if (this.#latch !== undefined) return this.#latch;
    const { table, clock, log } = this.#parts;
    const sealedAt = new Date(clock.now()).toISOString();
    const latch = await table.writeLatch({ reason, accessor, sealedAt });
    log.warn({ accessor, reason }, 'break-glass: the latch is written, every replica will seal');
    this.sealBecauseOf(latch);
    return latch;
  }

  /** The latch is in the table: forget everything, at once and for good. */
  sealBecauseOf(latch: Latch): void {
    if (this.state === 'Sealed') return;
    this.#latch = latch;
    this.close();
    const { reason, accessor, sealedAt } = latch;
    this.#parts.log.warn({ reason, accessor, sealed_at: sealedAt }, 'sealed');
  }

  /** The end of the process: the same wiping, without a latch. */
  close(): void {
    this.#masterKey?.wipe();
    this.#masterKey = undefined;
    for (const wipe of this.#wipes.splice(0)) wipeOrCrash(wipe);
  }
}

/** One part that cannot forget must not keep the others from it; the process then ends, and memory with it. */
function wipeOrCrash(wipe: () => void): void {
  try {
    wipe();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
