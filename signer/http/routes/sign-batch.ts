// POST /api/v1/eth2/sign, and the same of shares: one message for many keys (specification/signing.md#batches), in
// slices, for other requests.

import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../../common/formats/hex.ts';
import type { Log } from '../../../common/observe/log.ts';
import { ERROR_REASONS, type ErrorReason, SignerError } from '../../api/errors.ts';
import type { ClientFault } from '../../api/forks.ts';
import { type AccessDecision, evaluate, evaluateBeforeBody } from '../../auth/evaluate.ts';
import { SIGNATURE_BYTES } from '../../bls/queue.ts';
import type { LoadedKey } from '../../keys/loaded-key.ts';
import type { KeyStore } from '../../keys/store.ts';
import type { OperationRow } from '../../operations/row.ts';
import { ROWS } from '../../operations/rows.ts';
import { parseSignBatch, type SignBatch } from '../../operations/sign-batch.ts';
import { eventLoopTurns, type Turns } from '../../parallel.ts';
import type { Refused, SigningDependencies } from '../../sign/dependencies.ts';
import { type KeyOutcome, signBatch } from '../../sign/sign-batch.ts';
import type { Audit } from '../audit.ts';
import type { HttpRequest } from '../context.ts';
import type { RecordDecision } from '../decisions.ts';
import type { HeldRequests } from '../held.ts';
import { accepted, refusalError, type SuccessAnswer, sendAnswer, toSignerError } from '../replies.ts';
import { type KeyForm, OTHER_FORM, type SignHandler } from './sign.ts';

const PATHS: Readonly<Record<KeyForm, string>> = {
  whole: '/api/v1/eth2/sign',
  share: '/api/v1/eth2/distributed/sign',
};
const ACCESS = { kind: 'scope', scope: 'sign', namesKey: false, needsSigning: true } as const;

interface SignBatchLimits {
  readonly requestTimeoutSeconds: number;
}

interface BatchParts extends ResultParts, SigningDependencies {
  readonly keys: Pick<KeyStore, 'find' | 'state'>;
  readonly held: Pick<HeldRequests, 'hold'>;
  readonly recordDecision?: RecordDecision | undefined;
}

export function createSignBatchHandler({ requestTimeoutSeconds }: SignBatchLimits, parts: BatchParts): SignHandler {
  const turns = eventLoopTurns(1);
  return async (request, body, form) => {
    await turns.turn();
    if (request.context.released) throw new SignerError('client_closed');
    const { batch } = accepted(parseSignBatch(body));
    const results = new BatchResults(request, batch, form, parts);
    request.context.operation = batch.request.operation;
    const row: OperationRow = ROWS[batch.request.operation];
    request.context.position = row.place?.(batch.request.message);
    request.context.batch = results.counts;
    try {
      await signInTime(results, { requestTimeoutSeconds, turns }, parts);
      return await results.answer(turns);
    } catch (error) {
      if (!(error instanceof SignerError && error.reason === 'client_closed')) request.context.batch = undefined;
      throw error;
    }
  };
}

export function mountSignBatch(app: FastifyInstance, handle: SignHandler, form: KeyForm): void {
  app.post(PATHS[form], { config: { access: ACCESS } }, async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    return sendAnswer(reply, await handle(request, body, form));
  });
}

/** What is signed after the time is over is dropped. @throws SignerError why a request is refused whole */
async function signInTime(
  results: BatchResults,
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
    keysThere(results, (requestTimeoutSeconds * 1000) / 2, parts)
      .then(() => signAllowed(results, { signal: controller.signal, turns }, parts))
      .then(resolve, reject);
    await promise;
  } finally {
    clearTimeout(timer);
    context.onEnd = undefined;
  }
}

/** While keys load, until all that the caller may use are there. The other half of its time is for signing. */
async function keysThere({ request, batch }: BatchResults, limitMs: number, { keys, held }: BatchParts): Promise<void> {
  const access = request.context.caller?.access;
  if (keys.state !== 'loading' || access === undefined) return;
  let place = 0;
  const isThere = (): boolean => {
    for (; place < batch.publicKeys.length; place++) {
      const publicKey = batch.publicKeys[place] ?? '';
      const mayUse = () => evaluateBeforeBody(access, { scope: 'sign', publicKey }).allowed;
      if (keys.find(publicKey) === undefined && mayUse()) return false;
    }
    return true;
  };
  if (isThere()) return;
  await new Promise<void>((resolve) => {
    if (!held.hold(request, limitMs, isThere, resolve)) resolve();
  });
}

async function signAllowed(
  results: BatchResults,
  { signal, turns }: { readonly signal: AbortSignal; readonly turns: Turns },
  parts: BatchParts,
): Promise<void> {
  const { request, batch } = results;
  const { inFlight, recordDecision: record } = parts;
  const places: number[] = [];
  const keys: LoadedKey[] = [];
  try {
    for (const place of batch.publicKeys.keys()) {
      if (place > 0 && place % SLICE_KEYS === 0) await turns.turn();
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
    onHealed: (fault: ClientFault) => {
      request.context.healed = fault;
    },
    onOutcome: (at: number, outcome: KeyOutcome) => {
      record?.(request.context, keys[at]?.publicKey ?? '', outcome.kind === 'signed' ? null : reasonOf(outcome));
      results.decide(places[at] ?? -1, outcome);
    },
  };
  const recordAll = (reason: ErrorReason): void => {
    for (const { publicKey } of keys) record?.(request.context, publicKey, reason);
  };
  const refused = await signBatch(batch.request, keys, context, parts).catch((error: unknown) => {
    recordAll(toSignerError(error).reason);
    throw error;
  });
  if (refused !== undefined) recordAll(refused.reason);
  if (refused?.detail !== undefined) parts.log.warn({ request_id: request.id, ...refused.detail }, refused.reason);
  if (refused !== undefined) throw refusalError(refused);
}

/** In the order of the route of one key, so that a client that may not use a key does not learn whether it is here. */
function allowedKey(results: BatchResults, place: number, { keys, recordDecision }: BatchParts): LoadedKey | undefined {
  const { request, batch } = results;
  const access = request.context.caller?.access;
  const publicKey = batch.publicKeys[place];
  if (access === undefined || publicKey === undefined) return undefined;
  const some = evaluateBeforeBody(access, { scope: 'sign', publicKey });
  const key = keys.find(publicKey);
  const deny = (decision: AccessDecision): void => {
    if (key !== undefined) recordDecision?.(request.context, publicKey, 'denied');
    results.deny(place, decision);
  };
  if (!some.allowed) return void deny(some);
  if (key === undefined) {
    const reason = keys.state === 'loading' ? 'starting' : 'unknown_key';
    return void results.decide(place, { kind: 'refused', reason });
  }
  const decision = evaluate(access, { scope: 'sign', publicKey, operation: batch.request.operation });
  if (!decision.allowed) return void deny(decision);
  if ((key.share === undefined) === (results.form === 'whole')) return key;
  const refused = OTHER_FORM[results.form];
  recordDecision?.(request.context, publicKey, refused.reason);
  return void results.decide(place, refused);
}

/** Half a millisecond. */
const SLICE_KEYS = 256;

interface ResultParts {
  readonly log: Log;
  readonly audit: Pick<Audit, 'keyRefused'>;
  readonly onAuthRejection: (reason: ErrorReason) => void;
}

type Unsigned = Exclude<KeyOutcome, { kind: 'signed' }>;

/** A batch of thousands may last a second: it keeps no object a key, which the garbage collector would have to move. */
class BatchResults {
  readonly request: HttpRequest;
  readonly batch: SignBatch;
  readonly form: KeyForm;
  readonly counts: NonNullable<HttpRequest['context']['batch']>;
  readonly #parts: ResultParts;
  readonly #outcomes: ('signed' | Unsigned | undefined)[];
  readonly #signatures: Uint8Array;
  readonly #participantIds: Uint8Array;
  readonly #deniedBy = new Map<number, string>();
  #isFinal = false;

  constructor(request: HttpRequest, batch: SignBatch, form: KeyForm, parts: ResultParts) {
    this.request = request;
    this.batch = batch;
    this.form = form;
    this.#parts = parts;
    this.#outcomes = Array.from({ length: batch.publicKeys.length });
    this.#signatures = new Uint8Array(batch.publicKeys.length * SIGNATURE_BYTES);
    this.#participantIds = new Uint8Array(form === 'share' ? batch.publicKeys.length : 0);
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
  keepSpelling(place: number, { publicKey, share }: LoadedKey): void {
    this.#participantIds[place] = share?.participantId ?? 0; // of whole keys it keeps none
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
      const said = outcome === 'signed' ? this.#signed(place) : `"error":${errorText(outcome)}`;
      texts.push(`${place === 0 ? '[' : ','}{"identifier":"${identifiers[place]}",${said}}`);
      if (texts.length < SLICE_KEYS) continue;
      slices.push(Buffer.from(texts.join('')));
      texts = [];
      await turns.turn();
    }
    texts.push(']'); // a batch has a key at least: the parser refuses any other
    slices.push(Buffer.from(texts.join('')));
    this.#logFaults(faults);
    return { status: 200, headers: {}, contentType: 'application/json', body: Buffer.concat(slices) };
  }

  #signed(place: number): string {
    const at = place * SIGNATURE_BYTES;
    const signature = `"signature":"${encodeHex(this.#signatures.subarray(at, at + SIGNATURE_BYTES))}"`;
    if (this.form === 'whole') return signature;
    const { signingRoot } = this.request.context;
    assert(signingRoot !== undefined, 'what is signed has a root');
    return `"participant_id":"${this.#participantIds[place]}","signing_root":"${encodeHex(signingRoot)}",${signature}`;
  }

  #noteRefusal(
    place: number,
    outcome: Unsigned,
    faults: Map<ErrorReason, { keys: number; readonly error: SignerError }>,
  ): ErrorReason {
    const reason = reasonOf(outcome);
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

function reasonOf(outcome: Unsigned): ErrorReason {
  return outcome.kind === 'refused' ? outcome.reason : toSignerError(outcome.error).reason;
}

const LATE: Unsigned = { kind: 'failed', error: new SignerError('request_timeout') };

function errorText(outcome: Unsigned): string {
  const { reason, message } =
    outcome.kind === 'failed' ? toSignerError(outcome.error) : { reason: outcome.reason, message: messageOf(outcome) };
  return JSON.stringify({ code: ERROR_REASONS[reason].status, reason, message });
}

function messageOf({ reason, hint }: Refused): string {
  const { message } = ERROR_REASONS[reason];
  return hint === undefined ? message : `${message}: ${hint}`;
}
