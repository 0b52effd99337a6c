// The chamber: Unsealed or Sealed, and never back (specification/custody.md#sealing). The break-glass latch is written
// before this replica seals, so that a seal that was answered holds for every replica and across restarts.

import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { ChamberState } from '../api/chamber.ts';
import { SignerError, telling } from '../api/errors.ts';
import type { MasterKey } from './master-key.ts';
import type { Latch } from './state-rows.ts';
import type { StateTable } from './state-table.ts';

interface ChamberParts {
  readonly table: Pick<StateTable, 'writeLatch'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class Chamber {
  readonly #parts: ChamberParts;
  readonly #wipes: (() => void)[] = [];
  #masterKey: MasterKey | undefined;
  #latch: Latch | undefined;

  constructor(found: { readonly masterKey: MasterKey } | { readonly latch: Latch }, parts: ChamberParts) {
    this.#parts = parts;
    if ('latch' in found) this.#latch = found.latch;
    else this.#masterKey = found.masterKey;
  }

  get state(): ChamberState {
    return this.#masterKey === undefined ? 'Sealed' : 'Unsealed';
  }

  get latch(): Latch | undefined {
    return this.#latch;
  }

  get masterKey(): MasterKey {
    if (this.#masterKey === undefined) throw new SignerError('master_key_unavailable');
    return this.#masterKey;
  }

  /** Called once, when the chamber seals; at once when it is sealed already. It must wipe and not throw. */
  onSealed(wipe: () => void): void {
    if (this.state === 'Sealed') wipe();
    else this.#wipes.push(wipe);
  }

  /** @throws SignerError `state_stale` when it is not known whether the latch was written: a look finds out */
  async seal(reason: string | null, accessor: string): Promise<Latch> {
    if (this.#latch !== undefined) return this.#latch;
    const { table, clock, log } = this.#parts;
    const sealedAt = new Date(clock.now()).toISOString();
    const latch = await table.writeLatch({ reason, accessor, sealedAt }).catch(telling(MAY_BE_SEALED));
    log.warn({ accessor, reason }, 'break-glass: the latch is written, every replica will seal');
    this.sealBecauseOf(latch);
    return latch;
  }

  sealBecauseOf(latch: Latch): void {
    if (this.state === 'Sealed') return;
    this.#latch = latch;
    this.close();
    const { reason, accessor, sealedAt } = latch;
    this.#parts.log.warn({ reason, accessor, sealed_at: sealedAt }, 'sealed');
  }

  close(): void {
    this.#masterKey?.wipe();
    this.#masterKey = undefined;
    for (const wipe of this.#wipes.splice(0)) wipeOrCrash(wipe);
  }
}

const MAY_BE_SEALED = 'the latch may be there, and then every replica seals at its next look: repeat the request';

/** When one part fails to wipe its secrets, the others still wipe theirs. */
function wipeOrCrash(wipe: () => void): void {
  try {
    wipe();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
