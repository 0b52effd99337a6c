// The stateful mode: tokens and policies of the state table, in memory at one revision.

import { setTimeout as pause } from 'node:timers/promises';
import { oneAfterTheOther, sharedTurns } from '../../../common/flow/turns.ts';
import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { type ErrorReason, SignerError, telling } from '../../api/errors.ts';
import type { Authentication, AuthenticationRefusal, Authenticator, Caller } from '../authenticator.ts';
import { anyCidrContains } from '../cidr.ts';
import { type Credential, tokenDigest } from '../tokens.ts';
import { AuthHeadRejected, loadAuth } from './load.ts';
import { type RejectionHooks, Rejections } from './rejections.ts';
import { type AuthSnapshot, findCaller, isExpired, type TokenCaller } from './snapshot.ts';
import type { AuthHead, AuthKeys, AuthState } from './state.ts';
import { type AuthChange, isApplied, prepare } from './write.ts';

interface StatefulAuthParts extends RejectionHooks {
  readonly state: AuthState;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ChangeRefused {
  readonly kind: 'refused';
  readonly reason: ErrorReason;
  readonly hint?: string;
}

/** Decided again for every attempt, at the revision that the change is then conditional on. */
interface Actor {
  readonly accessor: string;
  readonly needsManagement: boolean;
}

export interface Done<Answer> {
  readonly kind: 'done';
  readonly answer: Answer;
}

/** Called again when another replica was faster. */
type AuthPlan<Answer> = (snapshot: AuthSnapshot, now: number) => AuthChange<Answer> | Done<Answer> | ChangeRefused;

const MAY_BE_MADE =
  'the change may be made all the same: look at the policies and tokens, repeat the request where it was not, and revoke a ' +
  'token that no answer has named';
const MAX_CHANGE_ATTEMPTS = 10;
const CONFLICT_PAUSE_MS = 20;
export const MAX_WAITING_CHANGES = 64;
/**
 * How long rows that were read stay good: what another replica finds when it starts, this one finds within it. A client
 * that may renew a token cannot keep every replica reading the whole state.
 */
export const LOOK_AGAIN_SECONDS = 60;
export class StatefulAuthenticator implements Authenticator {
  readonly #parts: StatefulAuthParts;
  readonly #keys: AuthKeys;
  #snapshot: AuthSnapshot | undefined;
  #sealed = false;
  #lookedAgainAt = Number.NEGATIVE_INFINITY;
  readonly #changeInTurn = oneAfterTheOther();
  #waitingChanges = 0;
  readonly #rejections: Rejections;

  /** Takes the keys over. Answers as if sealed until the first `refresh`. */
  constructor(keys: AuthKeys, parts: StatefulAuthParts) {
    this.#keys = keys;
    this.#parts = parts;
    this.#rejections = new Rejections(parts.log, parts);
  }

  get revision(): number {
    return this.#snapshot?.revision ?? 0;
  }

  /** Undefined also when the rows are to be read again, whether the head has moved or not. */
  head(): Pick<AuthHead, 'revision' | 'mac'> | undefined {
    return this.#trustsHeld() ? this.#snapshot : undefined;
  }

  /** Rows that the head names and that are not there as they were written. */
  get missingRows(): number {
    return this.#snapshot === undefined ? 0 : this.#snapshot.manifest.rows.size - this.#snapshot.rows.size;
  }

  get snapshot(): AuthSnapshot {
    if (this.#snapshot === undefined) throw new SignerError('auth_sealed');
    return this.#snapshot;
  }

  authenticate(credential: Credential, peerAddress: string | undefined): Authentication {
    try {
      return this.#authenticate(credential, peerAddress);
    } finally {
      if (credential.kind === 'token') credential.token.fill(0);
    }
  }

  current({ accessor }: Caller, peerAddress: string | undefined): Authentication {
    if (this.#snapshot === undefined) return refused('auth_sealed');
    return this.#judge(findCaller(this.#snapshot, accessor), peerAddress);
  }

  /** @throws AuthHeadRejected, or SignerError `state_stale`; what was effective stays so */
  readonly refresh = sharedTurns(() => this.#refresh());

  seal(): void {
    this.#sealed = true;
    this.#snapshot = undefined;
    this.#keys.rows.fill(0);
    this.#keys.tokens.fill(0);
  }

  digest(token: Uint8Array): string {
    this.#assertUnsealed();
    return tokenDigest(this.#keys.tokens, token);
  }

  /** @throws SignerError `state_stale` (the change may have been made), `overloaded` (it was not) */
  async change<Answer>(actor: Actor, plan: AuthPlan<Answer>): Promise<Done<Answer> | ChangeRefused> {
    if (this.#waitingChanges >= MAX_WAITING_CHANGES) throw new SignerError('overloaded');
    this.#waitingChanges += 1;
    try {
      return await this.#changeInTurn(() => this.#change(actor, plan));
    } finally {
      this.#waitingChanges -= 1;
    }
  }

  #authenticate(credential: Credential, peerAddress: string | undefined): Authentication {
    if (this.#snapshot === undefined) return refused('auth_sealed');
    if (credential.kind === 'malformed') return refused('malformed_credentials');
    if (credential.kind === 'none') return refused('missing_credentials');
    return this.#judge(this.#snapshot.callers.get(tokenDigest(this.#keys.tokens, credential.token)), peerAddress);
  }

  #judge(found: TokenCaller | undefined, peerAddress: string | undefined): Authentication {
    if (found === undefined || isExpired(found.token, this.#parts.clock.now())) return refused('invalid_token');
    const { cidrs } = found.token;
    const isFromBoundNetwork = cidrs.length === 0 || (peerAddress !== undefined && anyCidrContains(cidrs, peerAddress));
    return isFromBoundNetwork ? { kind: 'caller', caller: found.caller } : refused('peer_not_allowed');
  }

  async #refresh(): Promise<void> {
    this.#assertUnsealed();
    try {
      const now = this.#parts.clock.monotonic();
      const trustsHeld = this.#trustsHeld();
      const loaded = await loadAuth(this.#keys.rows, this.#parts.state, this.#snapshot, trustsHeld);
      this.#assertUnsealed(); // the keys may have been wiped in the middle of it
      this.#rejections.headIsGood();
      if (loaded === undefined) return;
      if (!trustsHeld) this.#lookedAgainAt = now;
      this.#install(loaded.snapshot, 'read');
      this.#rejections.rows(loaded.rejected);
    } catch (error) {
      this.#assertUnsealed();
      if (error instanceof AuthHeadRejected) this.#rejections.head(error, this.revision);
      throw error;
    }
  }

  async #change<Answer>(actor: Actor, plan: AuthPlan<Answer>): Promise<Done<Answer> | ChangeRefused> {
    for (let attempt = 1; attempt <= MAX_CHANGE_ATTEMPTS; attempt++) {
      const { snapshot } = this;
      const planned = this.#actorRefusal(actor, snapshot) ?? plan(snapshot, this.#parts.clock.now());
      if (planned.kind !== 'change') return planned;
      const { write, next } = prepare(this.#keys.rows, snapshot, planned);
      const committed = this.#parts.state.commit(snapshot.revision, write.changes, write.head);
      if ((await committed.catch(telling(MAY_BE_MADE))) === 'committed') {
        this.#install(next, 'written');
        return { kind: 'done', answer: planned.answer(next) };
      }
      await this.refresh().catch(telling(MAY_BE_MADE));
      // The answer to our commit may have been lost, and another replica committed after it.
      if (isApplied(this.snapshot, write)) return { kind: 'done', answer: planned.answer(next) };
      await pause(CONFLICT_PAUSE_MS * attempt * Math.random());
    }
    throw new SignerError('overloaded', { hint: 'other replicas changed the policies and tokens at the same time' });
  }

  /** A token that was revoked on another replica changes nothing. */
  #actorRefusal({ accessor, needsManagement }: Actor, snapshot: AuthSnapshot): ChangeRefused | undefined {
    const found = findCaller(snapshot, accessor);
    if (found === undefined || isExpired(found.token, this.#parts.clock.now())) {
      return { kind: 'refused', reason: 'invalid_token' };
    }
    if (!needsManagement || found.caller.management) return undefined;
    return { kind: 'refused', reason: 'denied', hint: 'a management token is needed' };
  }

  /** Revisions only go up: a late answer to our commit never undoes what a read has shown, such as rows that miss. */
  #install(snapshot: AuthSnapshot, from: 'read' | 'written'): void {
    const isLater = snapshot.revision > this.revision || (from === 'read' && snapshot.revision === this.revision);
    if (!this.#sealed && isLater) this.#snapshot = snapshot;
  }

  #trustsHeld(): boolean {
    return this.#parts.clock.monotonic() - this.#lookedAgainAt < LOOK_AGAIN_SECONDS * 1000;
  }

  #assertUnsealed(): void {
    if (this.#sealed) throw new SignerError('auth_sealed');
  }
}

function refused(reason: AuthenticationRefusal): Authentication {
  return { kind: 'refused', reason };
}
