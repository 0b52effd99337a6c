// POST /api/v1/eth2/sign: one message for many keys, one answer with a result for each
// (specification/signing.md#batches). No key is known before the body is read, so who may use which one is decided
// here, as on the route of one key: policy, loaded, policy with the operation. Each key is counted and, when it is
// refused, has an audit line of its own. Long work is done in slices, between which others are served.

import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../../formats/hex.ts';
import type { Log } from '../../../observe/log.ts';
import { ERROR_REASONS, type ErrorReason, SignerError } from '../../api/errors.ts';
import { positionOf } from '../../api/positions.ts';
import { parseSignBatch, type SignBatch } from '../../api/sign-batch.ts';
import { type AccessDecision, evaluate, evaluateBeforeBody } from '../../auth/evaluate.ts';
import type { LoadedKey } from '../../keys/loaded-key.ts';
import type { KeyStore } from '../../keys/store.ts';
import { SIGNATURE_BYTES } from '../../signing/bls/queue.ts';
import type { SigningDependencies } from '../../signing/sign.ts';
import { type KeyOutcome, signBatch } from '../../signing/sign-batch.ts';
import { accepted, refusal } from '../accepted.ts';
import type { Audit } from '../audit.ts';
import type { HttpRequest } from '../context.ts';
import { toSignerError } from '../faults.ts';
import { signBatchRouteSchema } from '../openapi.ts';
import { type SuccessAnswer, sendAnswer } from '../replies.ts';
import { type Turns, turnsOfEventLoop } from '../turns.ts';
import type { SignHandler } from './sign.ts';

export const SIGN_BATCH_PATH = '/api/v1/eth2/sign';
const ACCESS = { kind: 'scope', scope: 'sign', namesKey: false, needsSigning: true } as const;
/** Keys that are looked at, or answered, in one turn of the event loop: half a millisecond. */
const SLICE_KEYS = 256;

export interface BatchLimits {
  readonly requestTimeoutSeconds: number;
  /** signing.batch_max_keys */
  readonly batchMaxKeys: number;
}

export interface BatchParts {
  readonly signing: SigningDependencies;
  readonly keys: Pick<KeyStore, 'find' | 'state'>;
  readonly log: Log;
  /** Why nothing may be signed now, or undefined. */
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly audit: Pick<Audit, 'keyRefused'>;
  /** Called for each key that the caller may not use so. */
  readonly onAuthRejection: (reason: ErrorReason) => void;
}

export function createSignBatchHandler(
  { requestTimeoutSeconds, batchMaxKeys }: BatchLimits,
  parts: BatchParts,
): SignHandler {
  const turns = turnsOfEventLoop();
  return async (request, body) => {
    await turns.next();
    if (request.context.released) throw new SignerError('client_closed');
    const { batch } = accepted(parseSignBatch(body, batchMaxKeys));
    const results = new Results(request, batch, parts);
    request.context.operation = batch.request.operation;
    request.context.position = positionOf(batch.request);
    request.context.batch = results.counts;
    try {
      await signInTime(results, { requestTimeoutSeconds, turns }, parts);
      return await results.answer(turns);
    } catch (error) {
      // What is refused whole tells of no key.
      if (!(error instanceof SignerError && error.reason === 'client_closed')) request.context.batch = undefined;
      throw error;
    }
  };
}

export function mountSignBatch(app: FastifyInstance, handle: SignHandler): void {
  app.post(SIGN_BATCH_PATH, { config: { access: ACCESS }, schema: signBatchRouteSchema }, async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    return sendAnswer(reply, await handle(request, body));
  });
}

type Unsigned = Exclude<KeyOutcome, { kind: 'signed' }>;

/**
 * What became of each key so far. A batch of thousands may last a second, and others beside it: it keeps nothing of its
 * own a key, which the garbage collector would have to move meanwhile.
 */
class Results {
  readonly request: HttpRequest;
  readonly batch: SignBatch;
  /** For the audit line and the metrics. */
  readonly counts: NonNullable<HttpRequest['context']['batch']>;
  readonly #parts: BatchParts;
  readonly #outcomes: ('signed' | Unsigned | undefined)[];
  /** One after the other, in the places of their keys. */
  readonly #signatures: Uint8Array;
  readonly #deniedBy = new Map<number, string>();
  #isFinal = false;

  constructor(request: HttpRequest, batch: SignBatch, parts: BatchParts) {
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
    texts.push(identifiers.length === 0 ? '[]' : ']');
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

/**
 * Resolves when each key is decided or the time is over; what is signed after that is dropped, not sent.
 * @throws SignerError `overloaded`, `client_closed`, and why a request is refused whole
 */
async function signInTime(
  results: Results,
  { requestTimeoutSeconds, turns }: { readonly requestTimeoutSeconds: number; readonly turns: Turns },
  parts: BatchParts,
): Promise<void> {
  const { context } = results.request;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new SignerError('request_timeout'));
    resolve();
  }, requestTimeoutSeconds * 1000);
  context.onEnd = () => {
    const error = new SignerError('client_closed');
    controller.abort(error);
    reject(error);
  };
  try {
    signAllowed(results, { signal: controller.signal, turns }, parts).then(resolve, reject);
    await promise;
  } finally {
    clearTimeout(timer);
    context.onEnd = undefined;
  }
}

async function signAllowed(
  results: Results,
  { signal, turns }: { readonly signal: AbortSignal; readonly turns: Turns },
  parts: BatchParts,
): Promise<void> {
  const { request, batch } = results;
  const { inFlight } = parts.signing;
  const places: number[] = [];
  const keys: LoadedKey[] = [];
  try {
    for (const place of batch.publicKeys.keys()) {
      if (place > 0 && place % SLICE_KEYS === 0) await turns.next();
      signal.throwIfAborted();
      const key = allowedKey(results, place, parts);
      if (key === undefined) continue;
      results.keepSpelling(place, key);
      inFlight.begin(key.publicKey); // in the turn in which it was found
      keys.push(key);
      places.push(place);
    }
  } catch (error) {
    for (const { publicKey } of keys) inFlight.end(publicKey);
    throw error;
  }
  const context = {
    signal,
    span: request.context.span,
    onRoot: (root: Uint8Array) => {
      request.context.signingRoot = root;
    },
    hindrance: () => hindranceOf(parts),
    onOutcome: (at: number, outcome: KeyOutcome) => results.decide(places[at] ?? -1, outcome),
  };
  const refused = await signBatch(batch.request, keys, context, parts.signing);
  if (refused?.detail !== undefined) parts.log.warn({ request_id: request.id, ...refused.detail }, refused.reason);
  if (refused !== undefined) throw refusal(refused);
}

/** A signer that shuts down finishes what it has admitted. */
function hindranceOf({ signingRefusal }: BatchParts): ErrorReason | undefined {
  const refusal = signingRefusal();
  return refusal === 'shutting_down' ? undefined : refusal;
}

/** In the order of the route of one key, so that whoever may not use a key does not learn whether it is here. */
function allowedKey(results: Results, place: number, { keys }: BatchParts): LoadedKey | undefined {
  const { request, batch } = results;
  const access = request.context.caller?.access;
  const publicKey = batch.publicKeys[place];
  if (access === undefined || publicKey === undefined) return undefined;
  const some = evaluateBeforeBody(access, { scope: 'sign', publicKey });
  if (!some.allowed) return void results.deny(place, some);
  const key = keys.find(publicKey);
  if (key === undefined) {
    const reason = keys.state === 'loading' ? 'starting' : 'unknown_key';
    return void results.decide(place, { kind: 'refused', reason });
  }
  const decision = evaluate(access, { scope: 'sign', publicKey, operation: batch.request.operation });
  return decision.allowed ? key : void results.deny(place, decision);
}
