// POST /api/v1/eth2/sign: one message for many keys, and one answer with a result for each key
// (specification/signing.md#batches). The keys are unknown until the body is read. So this route decides who may use
// each key, with the steps of the route for one key: policy, loaded, policy with the operation. It counts each key, and
// writes an audit line for each refused key. It does long work in slices, and serves other requests between them.

import type { FastifyInstance } from 'fastify';
import { type ErrorReason, SignerError } from '../../api/errors.ts';
import { positionOf } from '../../api/positions.ts';
import { parseSignBatch } from '../../api/sign-batch.ts';
import { evaluate, evaluateBeforeBody } from '../../auth/evaluate.ts';
import type { LoadedKey } from '../../keys/loaded-key.ts';
import type { KeyStore } from '../../keys/store.ts';
import type { SigningDependencies } from '../../signing/sign.ts';
import { type KeyOutcome, signBatch } from '../../signing/sign-batch.ts';
import { accepted, refusal } from '../accepted.ts';
import { signBatchRouteSchema } from '../openapi.ts';
import { sendAnswer } from '../replies.ts';
import { type Turns, turnsOfEventLoop } from '../turns.ts';
import { BatchResults, type ResultParts, SLICE_KEYS } from './batch-results.ts';
import type { SignHandler } from './sign.ts';

const SIGN_BATCH_PATH = '/api/v1/eth2/sign';
const ACCESS = { kind: 'scope', scope: 'sign', namesKey: false, needsSigning: true } as const;

export interface SignBatchLimits {
  readonly requestTimeoutSeconds: number;
  /** signing.batch_max_keys */
  readonly batchMaxKeys: number;
}

export interface BatchParts extends ResultParts {
  readonly signing: SigningDependencies;
  readonly keys: Pick<KeyStore, 'find' | 'state'>;
  /** Why nothing may be signed now, or undefined. */
  readonly signingRefusal: () => ErrorReason | undefined;
}

export function createSignBatchHandler(
  { requestTimeoutSeconds, batchMaxKeys }: SignBatchLimits,
  parts: BatchParts,
): SignHandler {
  const turns = turnsOfEventLoop();
  return async (request, body) => {
    await turns.next();
    if (request.context.released) throw new SignerError('client_closed');
    const { batch } = accepted(parseSignBatch(body, batchMaxKeys));
    const results = new BatchResults(request, batch, parts);
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

/**
 * Resolves when each key is decided or the time is over; what is signed after that is dropped, not sent.
 * @throws SignerError `overloaded`, `client_closed`, and why a request is refused whole
 */
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
    signAllowed(results, { signal: controller.signal, turns }, parts).then(resolve, reject);
    await promise;
  } finally {
    clearTimeout(timer);
    context.onEnd = undefined;
  }
}

async function signAllowed(
  results: BatchResults,
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
function allowedKey(results: BatchResults, place: number, { keys }: BatchParts): LoadedKey | undefined {
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
