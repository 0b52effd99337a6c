// POST /api/v1/eth2/sign/{identifier}: turns the bytes into a typed request and answers it. admission.ts has decided
// who may use the key, before the body was read. This route decides which message it is, and whether the caller may
// have it signed.

import type { FastifyInstance } from 'fastify';
import type { Log } from '../../../observe/log.ts';
import { type ErrorReason, SignerError } from '../../api/errors.ts';
import { answerFormat, signatureAnswer } from '../../api/negotiate.ts';
import { paymentOf } from '../../api/payments.ts';
import { positionOf } from '../../api/positions.ts';
import type { SignRequest } from '../../api/sign-request.ts';
import { evaluate } from '../../auth/evaluate.ts';
import type { UnmetCondition } from '../../auth/payment-conditions.ts';
import type { KeyStore } from '../../keys/store.ts';
import { type EnvelopeReader, MAX_BODY_READ_AT_ONCE_BYTES } from '../../signing/envelopes/envelope-reader.ts';
import { rememberedRequests } from '../../signing/remembered.ts';
import { type Refused, type SigningDependencies, sign } from '../../signing/sign.ts';
import { accepted } from '../accepted.ts';
import { isAllowed } from '../caller.ts';
import type { HttpRequest } from '../context.ts';
import { signRouteSchema } from '../openapi.ts';
import { type SuccessAnswer, sendAnswer } from '../replies.ts';
import { type LargeBodyParts, readLargeBody } from './large-bodies.ts';

const PATH = '/api/v1/eth2/sign/:identifier';
const ACCESS = { kind: 'scope', scope: 'sign', namesKey: true, needsSigning: true } as const;

export interface SignHandlerOptions {
  readonly requestTimeoutSeconds: number;
  readonly maxRequestBodyBytes: number;
}

export interface SignHandlerDependencies {
  readonly envelopes: Pick<EnvelopeReader, 'read'>;
  readonly keys: Pick<KeyStore, 'find'>;
  readonly log: Log;
  readonly signing: SigningDependencies;
  readonly onAuthRejection: (reason: ErrorReason) => void;
  /** Why a request that was admitted is not any more: a token was revoked, the signer was sealed. */
  readonly readmit: (request: HttpRequest) => ErrorReason | undefined;
}

/**
 * A request that was admitted, its body read, and its answer.
 * @throws SignerError for what is refused, and for faults as sign() does
 */
export type SignHandler = (request: HttpRequest, body: Uint8Array) => Promise<SuccessAnswer>;

export function createSignHandler(
  { requestTimeoutSeconds, maxRequestBodyBytes }: SignHandlerOptions,
  { envelopes, keys, log, onAuthRejection, readmit, ...dependencies }: SignHandlerDependencies,
): SignHandler {
  const { parse, rootOf } = rememberedRequests(dependencies.signing.network);
  const signing: SigningDependencies = { ...dependencies.signing, rootOf };
  const large: LargeBodyParts = { envelopes, maxRequestBodyBytes, parse };
  const largestReadAtOnce = Math.min(MAX_BODY_READ_AT_ONCE_BYTES, maxRequestBodyBytes);
  return async (request, body) => {
    const isLarge = body.length > largestReadAtOnce;
    const parsed = isLarge
      ? await inTime(request, requestTimeoutSeconds, (signal) => readLargeBody(body, signal, large))
      : parse(body);
    const revoked = isLarge ? readmit(request) : undefined; // reading it took a while
    if (revoked !== undefined) throw new SignerError(revoked);
    const { request: message } = accepted(parsed);
    request.context.operation = message.operation;
    request.context.position = positionOf(message);
    const forbidden = messageRefusal(request, message);
    if (forbidden !== undefined) {
      onAuthRejection(forbidden);
      throw new SignerError(forbidden);
    }

    const key = keys.find(request.context.publicKey ?? '');
    if (key === undefined) throw new SignerError('unknown_key'); // removed while the body came in
    const { span } = request.context;
    const onRoot = (root: Uint8Array): void => {
      request.context.signingRoot = root;
    };
    const outcome = await inTime(request, requestTimeoutSeconds, (signal) =>
      sign(message, key, { signal, span, onRoot }, signing),
    );
    if (outcome.kind === 'refused') logDetail(request, outcome, log);
    return signed(request, accepted(outcome).signature);
  };
}

export function mountSign(app: FastifyInstance, handle: SignHandler): void {
  app.post(PATH, { config: { access: ACCESS }, schema: signRouteSchema }, async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    return sendAnswer(reply, await handle(request, body));
  });
}

/** A payment is told which of its values no rule allows, and never what a rule holds. */
const PAYMENT_REFUSALS = {
  fee_recipient: 'fee_recipient_not_allowed',
  gas_limit: 'gas_limit_not_allowed',
} as const satisfies Record<UnmetCondition, ErrorReason>;

/** The second question, with the message: whether its operation and its payment are allowed on this key. */
function messageRefusal(request: HttpRequest, message: SignRequest): ErrorReason | undefined {
  const { caller, publicKey } = request.context;
  if (caller === undefined || publicKey === undefined) return 'denied';
  const { operation } = message;
  const payment = paymentOf(message);
  request.context.payment = payment;
  const decision = evaluate(caller.access, { scope: 'sign', publicKey, operation, payment });
  if (isAllowed(request, decision)) return undefined;
  const unmet = !decision.allowed && decision.why === 'no_matching_allow' ? decision.unmet : undefined;
  return unmet === undefined ? 'denied' : PAYMENT_REFUSALS[unmet];
}

/** Gives up when the client goes away or the time is over; a signature made after that is dropped, not sent. */
async function inTime<T>(
  { context }: HttpRequest,
  requestTimeoutSeconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (context.released) throw new SignerError('client_closed'); // while its body was read
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const controller = new AbortController();
  const abandon = (reason: 'request_timeout' | 'client_closed'): void => {
    const error = new SignerError(reason, reason === 'request_timeout' ? { hint: 'nothing was signed for it' } : {});
    controller.abort(error);
    reject(error);
  };
  const timer = setTimeout(abandon, requestTimeoutSeconds * 1000, 'request_timeout');
  context.onEnd = () => abandon('client_closed');
  try {
    // Whichever is first settles the promise, as Promise.race would for twice the time.
    work(controller.signal).then(resolve, reject);
    return await promise;
  } finally {
    clearTimeout(timer);
    context.onEnd = undefined;
  }
}

function logDetail({ id, context }: HttpRequest, { reason, detail }: Refused, log: Log): void {
  if (detail !== undefined) log.warn({ request_id: id, public_key: context.publicKey, ...detail }, reason);
}

function signed({ headers }: HttpRequest, signature: Uint8Array): SuccessAnswer {
  return { status: 200, headers: {}, ...signatureAnswer(signature, answerFormat(headers.accept)) };
}
