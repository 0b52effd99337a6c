// The results for the keys of a batch, and the answer made from them (specification/signing.md#batches). Each refused
// key has its own audit line. A fault is logged once for all keys that it concerns.

import { encodeHex } from '../../../formats/hex.ts';
import type { Log } from '../../../observe/log.ts';
import { ERROR_REASONS, type ErrorReason, SignerError } from '../../api/errors.ts';
import type { SignBatch } from '../../api/sign-batch.ts';
import type { AccessDecision } from '../../auth/evaluate.ts';
import type { LoadedKey } from '../../keys/loaded-key.ts';
import { SIGNATURE_BYTES } from '../../signing/bls/queue.ts';
import type { KeyOutcome } from '../../signing/sign-batch.ts';
import type { Audit } from '../audit.ts';
import type { HttpRequest } from '../context.ts';
import { toSignerError } from '../faults.ts';
import type { SuccessAnswer } from '../replies.ts';
import type { Turns } from '../turns.ts';

/** Keys that are looked at, or answered, in one turn of the event loop: half a millisecond. */
export const SLICE_KEYS = 256;

export interface ResultParts {
  readonly log: Log;
  readonly audit: Pick<Audit, 'keyRefused'>;
  /** Called for each key that the caller may not use so. */
  readonly onAuthRejection: (reason: ErrorReason) => void;
}

type Unsigned = Exclude<KeyOutcome, { kind: 'signed' }>;

/**
 * What became of each key so far. A batch of thousands may last a second, and others beside it: it keeps nothing of its
 * own a key, which the garbage collector would have to move meanwhile.
 */
export class BatchResults {
  readonly request: HttpRequest;
  readonly batch: SignBatch;
  /** For the audit line and the metrics. */
  readonly counts: NonNullable<HttpRequest['context']['batch']>;
  readonly #parts: ResultParts;
  readonly #outcomes: ('signed' | Unsigned | undefined)[];
  /** One after the other, in the places of their keys. */
  readonly #signatures: Uint8Array;
  readonly #deniedBy = new Map<number, string>();
  #isFinal = false;

  constructor(request: HttpRequest, batch: SignBatch, parts: ResultParts) {
    this.request = request;
    this.batch = batch;
    this.#parts = parts;
    this.#outcomes = Array.from({ length: batch.publicKeys.length });
    this.#signatures = new Uint8Array(batch.publicKeys.length * SIGNATURE_BYTES);
    this.counts = { keys: batch.publicKeys.length, outcomes: new Map() };
  }

  decide(place: number, outcome: KeyOutcome): void {
    if (this.#isFinal) return;
    if (outcome.kind === 'signed') this.#signatures.set(outcome.signature, place * SIGNATURE_BYTES);
    this.#outcomes[place] = outcome.kind === 'signed' ? 'signed' : outcome;
  }

  deny(place: number, decision: AccessDecision): void {
    if (!decision.allowed && decision.why === 'denied_by_rule') this.#deniedBy.set(place, decision.policy);
    this.#parts.onAuthRejection('denied');
    this.decide(place, { kind: 'refused', reason: 'denied' });
  }

  /** The key store's spelling of a key, where it is the client's too, replaces the body's: the body can go then. */
  keepSpelling(place: number, { publicKey }: LoadedKey): void {
    const { identifiers, publicKeys } = this.batch;
    publicKeys[place] = publicKey;
    if (identifiers[place] === publicKey) identifiers[place] = publicKey;
  }

  /** From now on nothing changes: a key that is undecided was not signed in time. */
  async answer(turns: Turns): Promise<SuccessAnswer> {
    this.#isFinal = true;
    const faults = new Map<ErrorReason, { keys: number; readonly error: SignerError }>();
    const { identifiers } = this.batch;
    /** Bytes, as they go out: a text of half a megabyte would be copied twice more. */
    const slices: Uint8Array[] = [];
    let texts: string[] = [];
    for (let place = 0; place < identifiers.length; place++) {
      const outcome = this.#outcomes[place] ?? LATE;
      const reason = outcome === 'signed' ? 'signed' : this.#noteRefusal(place, outcome, faults);
      this.counts.outcomes.set(reason, (this.counts.outcomes.get(reason) ?? 0) + 1);
      const said = outcome === 'signed' ? `"signature":"${this.#signature(place)}"` : `"error":${errorText(outcome)}`;
      texts.push(`${place === 0 ? '[' : ','}{"identifier":"${identifiers[place]}",${said}}`);
      if (texts.length < SLICE_KEYS) continue;
      slices.push(Buffer.from(texts.join('')));
      texts = [];
      await turns.next();
    }
    texts.push(']'); // a batch has a key at least: the parser refuses any other
    slices.push(Buffer.from(texts.join('')));
    this.#logFaults(faults);
    return { status: 200, headers: {}, contentType: 'application/json', body: Buffer.concat(slices) };
  }

  #signature(place: number): string {
    const at = place * SIGNATURE_BYTES;
    return encodeHex(this.#signatures.subarray(at, at + SIGNATURE_BYTES));
  }

  #noteRefusal(
    place: number,
    outcome: Unsigned,
    faults: Map<ErrorReason, { keys: number; readonly error: SignerError }>,
  ): ErrorReason {
    const reason = outcome.kind === 'refused' ? outcome.reason : toSignerError(outcome.error).reason;
    if (outcome.kind === 'failed') {
      const fault = faults.get(reason) ?? { keys: 0, error: toSignerError(outcome.error) };
      fault.keys += 1;
      faults.set(reason, fault);
    }
    const publicKey = this.batch.publicKeys[place] ?? '';
    this.#parts.audit.keyRefused(this.request, { publicKey, reason, deniedBy: this.#deniedBy.get(place) });
    return reason;
  }

  #logFaults(faults: ReadonlyMap<ErrorReason, { readonly keys: number; readonly error: SignerError }>): void {
    const { log } = this.#parts;
    for (const [reason, { keys, error }] of faults) {
      const fields = { request_id: this.request.id, reason, keys };
      const cause = error.cause instanceof Error ? error.cause.message : undefined;
      if (reason === 'internal_error') log.error({ ...fields, err: error.cause }, 'request failed');
      else log.warn({ ...fields, cause, ...error.detail }, 'keys of a batch could not be served');
    }
  }
}

const LATE: Unsigned = { kind: 'failed', error: new SignerError('request_timeout') };

function errorText(outcome: Unsigned): string {
  const { reason, message } =
    outcome.kind === 'failed'
      ? toSignerError(outcome.error)
      : { reason: outcome.reason, message: ERROR_REASONS[outcome.reason].message };
  return JSON.stringify({ code: ERROR_REASONS[reason].status, reason, message });
}
