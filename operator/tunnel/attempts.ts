// What follows an attempt to connect that failed. An enclave that is not there, or whose evidence has not begun yet, is
// tried on without end. Other evidence that does not verify is asked again after a growing pause; several in a row end
// the tunnel.

import type { FailureCode } from '../../common/attestation/failure.ts';
import { backoffMs } from '../../common/flow/backoff.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { AttestationFailure } from '../attestation/attestation-failure.ts';

/** Failed verifications without a connection that verified between them. */
export const MAX_REFUSED_IN_A_ROW = 5;

export interface Pauses {
  readonly firstMs: number;
  readonly mostMs: number;
}

export interface AttemptsOptions {
  readonly unreachable?: Pauses;
  readonly unverified?: Pauses;
  readonly onUnreachable: (error: unknown) => void;
  /** @param inARow failures so far; 0 when only the clocks differ, which ends nothing */
  readonly onUnverified: (failure: AttestationFailure, inARow: number) => void;
  readonly onReachable: () => void;
}

const UNREACHABLE: Pauses = { firstMs: 250, mostMs: 2000 };
/** Five in a row take 7.5 to 15 s of pauses: a replica that is being replaced, or a rotation, is over by then. */
const UNVERIFIED: Pauses = { firstMs: 1000, mostMs: 30_000 };
const OF_CLOCKS: ReadonlySet<FailureCode> = new Set(['not_yet_valid', 'from_the_future']);

type SignerReach = 'reachable' | 'unreachable' | 'unverified';

export class Attempts {
  readonly #options: AttemptsOptions;
  #condition: SignerReach = 'reachable';
  /** Attempts that began before the last failure say nothing new. */
  #round = 0;
  #refusedInARow = 0;
  #failures = 0;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  get condition(): SignerReach {
    return this.#condition;
  }

  get round(): number {
    return this.#round;
  }

  succeeded(): void {
    if (this.#condition !== 'reachable') this.#options.onReachable();
    this.#condition = 'reachable';
    this.#refusedInARow = 0;
    this.#failures = 0;
  }

  failed(error: unknown, round: number): boolean {
    if (round !== this.#round) return true;
    this.#round += 1;
    const before = this.#condition;
    this.#condition = error instanceof AttestationFailure ? 'unverified' : 'unreachable';
    this.#failures = this.#condition === before ? this.#failures + 1 : 1;
    if (!(error instanceof AttestationFailure)) {
      if (before !== 'unreachable') this.#options.onUnreachable(error);
      return true;
    }
    const ofClocks = isOfClocks(error);
    if (!ofClocks) this.#refusedInARow += 1;
    if (this.#refusedInARow >= MAX_REFUSED_IN_A_ROW) return false;
    this.#options.onUnverified(error, ofClocks ? 0 : this.#refusedInARow);
    return true;
  }

  pauseMs(): number {
    const { unreachable = UNREACHABLE, unverified = UNVERIFIED } = this.#options;
    return backoffMs(this.#failures, this.#condition === 'unverified' ? unverified : unreachable);
  }
}

/** A fault of this program, and of no network: to try again would hide it for ever. Node's own errors have a code. */
export function isBug(error: unknown): boolean {
  const isOfLanguage = [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
  return isOfLanguage && errorCode(error) === undefined;
}

/** The evidence may be good, and the clock of one side is behind or ahead. */
export function isOfClocks({ failures }: AttestationFailure): boolean {
  return failures.length > 0 && failures.every(({ code }) => OF_CLOCKS.has(code));
}
