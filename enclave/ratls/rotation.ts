// Keeps the RA-TLS identity fresh. While the NSM fails, the identity in force goes on as long as its evidence is good.

import { backoffMs } from '../../common/flow/backoff.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { Nsm } from '../../signer/tee/nsm.ts';
import { createIdentity, type RatlsIdentity } from './identity.ts';

export interface IdentitySource {
  /** Undefined once it is over. */
  current(): RatlsIdentity | undefined;
}

export interface RotationOptions {
  readonly intervalSeconds: number;
  readonly validitySeconds: number;
}

interface RotationParts {
  readonly nsm: Pick<Nsm, 'attest' | 'signsNothing'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  readonly onRotation?: (outcome: { readonly identity: RatlsIdentity } | 'failed') => void;
  /** A timer unless a test decides. @returns what calls it off */
  readonly schedule?: (run: () => void, afterMs: number) => () => void;
}

/** The NSM uses its leaf again until its end (specification/evidence.md#tls). */
export const EVIDENCE_MARGIN_MS = 15 * 60_000;
/** Also when the clock is behind the NSM's; far below setTimeout's limit. */
const MAX_PAUSE_MS = 3 * 3_600_000 - EVIDENCE_MARGIN_MS;
/** The NSM may give the leaf again that is about to end. */
const MIN_PAUSE_MS = 60_000;
const RETRY = { firstMs: 1000, mostMs: 60_000 } as const;
/** A tenth of what clients take. */
const MAX_CLOCKS_APART_MS = 30_000;
const CLOCKS_APART =
  'the clock of the Nitro Secure Module and the own differ: clients refuse the evidence when it is 300 s. The own clock is the ' +
  "parent's gift: look at its time service, and restart the enclave when it does not come back by itself";

export class RatlsRotation implements IdentitySource {
  readonly #options: RotationOptions;
  readonly #parts: RotationParts;
  readonly #schedule: NonNullable<RotationParts['schedule']>;
  #identity: RatlsIdentity | undefined;
  #failures = 0;
  #stopped = false;
  #cancel: (() => void) | undefined;

  constructor(options: RotationOptions, parts: RotationParts) {
    this.#options = options;
    this.#parts = parts;
    this.#schedule = parts.schedule ?? afterTimer;
  }

  /** @throws NsmError: a signer without evidence does not start */
  async start(): Promise<void> {
    this.#install(await this.#create());
    this.#rotateLater();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#identity?.key.fill(0);
    this.#identity = undefined;
  }

  current(): RatlsIdentity | undefined {
    const identity = this.#identity;
    return identity !== undefined && this.#parts.clock.now() < identity.expiresAt ? identity : undefined;
  }

  async #rotate(): Promise<void> {
    try {
      const identity = await this.#create();
      if (this.#stopped) identity.key.fill(0);
      else this.#install(identity);
    } catch (error) {
      this.#fail(error);
    }
    this.#rotateLater();
  }

  #create(): Promise<RatlsIdentity> {
    const { nsm, clock } = this.#parts;
    return createIdentity({ nsm, clock, validitySeconds: this.#options.validitySeconds });
  }

  #install(identity: RatlsIdentity): void {
    this.#identity?.key.fill(0); // connections that it serves have their own copy in OpenSSL
    this.#identity = identity;
    this.#failures = 0;
    const { log, onRotation } = this.#parts;
    onRotation?.({ identity });
    const { fingerprint, expiresAt, evidenceExpiresAt } = identity;
    log.info(
      { fingerprint, not_after: rfc3339(expiresAt), evidence_not_after: rfc3339(evidenceExpiresAt) },
      'RA-TLS certificate rotated',
    );
    const apartSeconds = Math.round(identity.nsmAheadMs / 1000);
    if (Math.abs(identity.nsmAheadMs) > MAX_CLOCKS_APART_MS)
      log.warn({ nsm_ahead_seconds: apartSeconds }, CLOCKS_APART);
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.#failures += 1;
    const { log, onRotation } = this.#parts;
    onRotation?.('failed');
    const current = this.current();
    const fields = { failures: this.#failures, error: error instanceof Error ? error.message : String(error) };
    if (current === undefined)
      log.error(fields, 'RA-TLS: no evidence; new connections are refused until the NSM answers');
    else log.warn({ ...fields, not_after: rfc3339(current.expiresAt) }, 'RA-TLS certificate not rotated');
  }

  #rotateLater(): void {
    if (this.#stopped) return;
    this.#cancel = this.#schedule(() => void this.#rotate(), this.#pauseMs());
  }

  #pauseMs(): number {
    if (this.#failures > 0) return backoffMs(this.#failures, RETRY);
    const identity = this.#identity;
    if (identity === undefined) return 0;
    const now = this.#parts.clock.now();
    const intervalEndsAt = identity.madeAt + this.#options.intervalSeconds * 1000;
    const dueAt = Math.min(intervalEndsAt, identity.evidenceExpiresAt - EVIDENCE_MARGIN_MS);
    const remainingMs = identity.expiresAt - now;
    const floorMs = Math.min(MIN_PAUSE_MS, this.#options.intervalSeconds * 1000, remainingMs / 2);
    return Math.min(Math.max(dueAt - now, floorMs, RETRY.firstMs), MAX_PAUSE_MS);
  }
}

function afterTimer(run: () => void, afterMs: number): () => void {
  const timer = setTimeout(run, afterMs);
  timer.unref();
  return () => clearTimeout(timer);
}

function rfc3339(at: number): string {
  return new Date(at).toISOString();
}
