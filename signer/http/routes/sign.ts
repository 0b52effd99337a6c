// POST /api/v1/eth2/sign/{identifier}, and the same of a share: whether the caller, who may use the key, may have this
// message signed.

import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../../common/formats/hex.ts';
import type { Log } from '../../../common/observe/log.ts';
import type { KeyShare, PartialSignature } from '../../api/distributed.ts';
import { type ErrorReason, SignerError } from '../../api/errors.ts';
import type { ClientFault } from '../../api/forks.ts';
import { canSignWith, evaluate, type UnmetCondition } from '../../auth/evaluate.ts';
import type { KeyStore } from '../../keys/store.ts';
import { rememberedRequests } from '../../operations/parse.ts';
import type { OperationRow } from '../../operations/row.ts';
import { ROWS } from '../../operations/rows.ts';
import type { SignRequest } from '../../operations/sign-request.ts';
import type { Refused, SigningDependencies } from '../../sign/dependencies.ts';
import { signingRoots } from '../../sign/message-root.ts';
import { sign } from '../../sign/sign.ts';
import { callerOf, type HttpRequest, isAllowed } from '../context.ts';
import { type RecordDecision, reportOutcome } from '../decisions.ts';
import { type LargeBodyParts, largeBodies } from '../envelopes.ts';
import {
  accepted,
  answerFormat,
  refusalError,
  type SuccessAnswer,
  sendAnswer,
  sendJson,
  signatureAnswer,
} from '../replies.ts';

/** Which keys a route signs with. */
export type KeyForm = 'whole' | 'share';

/** Said to callers who may sign with the key, before anything is recorded of it. */
export const OTHER_FORM: Readonly<Record<KeyForm, Refused>> = {
  whole: { kind: 'refused', reason: 'key_is_share' },
  share: { kind: 'refused', reason: 'unknown_key', hint: 'as a share; this signer holds the whole key' },
};

const PATHS: Readonly<Record<KeyForm, string>> = {
  whole: '/api/v1/eth2/sign/:identifier',
  share: '/api/v1/eth2/distributed/sign/:identifier',
};
const ACCESS = { kind: 'scope', scope: 'sign', namesKey: true, needsSigning: true } as const;

interface SignHandlerOptions {
  readonly requestTimeoutSeconds: number;
  readonly maxRequestBodyBytes: number;
}

interface SignHandlerParts extends SigningDependencies, Pick<LargeBodyParts, 'envelopes' | 'readmit'> {
  readonly keys: Pick<KeyStore, 'find'>;
  readonly log: Log;
  readonly recordDecision?: RecordDecision | undefined;
  readonly onAuthRejection: (reason: ErrorReason) => void;
}

export type SignHandler = (request: HttpRequest, body: Uint8Array, form: KeyForm) => Promise<SuccessAnswer>;

export function createSignHandler(
  { requestTimeoutSeconds, maxRequestBodyBytes }: SignHandlerOptions,
  parts: SignHandlerParts,
): SignHandler {
  const { envelopes, keys, log, onAuthRejection, readmit, recordDecision } = parts;
  const { parse, rootOf } = rememberedRequests(signingRoots(parts.network));
  const signing: SigningDependencies = { ...parts, rootOf };
  const large = largeBodies({ envelopes, maxRequestBodyBytes, parse, readmit });
  return async (request, body, form) => {
    const parsed =
      body.length > large.largestReadAtOnce
        ? await withinRequest(request, requestTimeoutSeconds, (signal) => large.read(request, body, signal))
        : parse(body);
    const { request: message } = accepted(parsed);
    request.context.operation = message.operation;
    const row: OperationRow = ROWS[message.operation];
    request.context.position = row.place?.(message.message);
    request.context.payment = row.payment?.(message.message);
    const { publicKey = '' } = request.context;
    const report = (reason: ErrorReason | null): void => recordDecision?.(request.context, publicKey, reason);
    const decision = decideMessage(request, message);
    if (typeof decision === 'string') {
      onAuthRejection(decision);
      report(decision);
      throw new SignerError(decision);
    }
    const { onlyForOwnBlocks } = decision;

    const key = keys.find(publicKey);
    if (key === undefined) throw new SignerError('unknown_key'); // removed while the body came in
    if ((key.share === undefined) !== (form === 'whole')) {
      report(OTHER_FORM[form].reason);
      throw refusalError(OTHER_FORM[form]);
    }
    const { span } = request.context;
    const caller = request.context.caller?.accessor;
    const onRoot = (root: Uint8Array): void => {
      request.context.signingRoot = root;
    };
    const onHealed = (fault: ClientFault): void => {
      request.context.healed = fault;
    };
    const outcome = await withinRequest(request, requestTimeoutSeconds, (signal) =>
      reportOutcome(sign(message, key, { signal, span, caller, onRoot, onHealed, onlyForOwnBlocks }, signing), report),
    );
    if (outcome.kind === 'refused') {
      logDetail(request, outcome, log);
      if (outcome.reason === 'not_own_block') onAuthRejection(outcome.reason);
    }
    return signed(request, accepted(outcome).signature, key.share);
  };
}

export function mountSign(app: FastifyInstance, handle: SignHandler, form: KeyForm): void {
  app.post(PATHS[form], { config: { access: ACCESS } }, async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    return sendAnswer(reply, await handle(request, body, form));
  });
}

/** A payment is told which of its values no rule allows, and never what a rule holds. */
const PAYMENT_REFUSALS = {
  fee_recipient: 'fee_recipient_not_allowed',
  gas_limit: 'gas_limit_not_allowed',
  builder: 'builder_not_allowed',
  builder_index: 'builder_index_not_allowed',
} as const satisfies Record<UnmetCondition, ErrorReason>;

function decideMessage(
  request: HttpRequest,
  { operation }: SignRequest,
): ErrorReason | { readonly onlyForOwnBlocks: boolean } {
  const { caller, publicKey, payment } = request.context;
  if (caller === undefined || publicKey === undefined) return 'denied';
  const decision = evaluate(caller.access, { scope: 'sign', publicKey, operation, payment });
  if (isAllowed(request, decision)) {
    return { onlyForOwnBlocks: decision.allowed && decision.onlyForOwnBlocks === true };
  }
  const unmet = !decision.allowed && decision.why === 'no_matching_allow' ? decision.unmet : undefined;
  return unmet === undefined ? 'denied' : PAYMENT_REFUSALS[unmet];
}

/** A signature made after the client went away, or after the time is over, is dropped, not sent. */
async function withinRequest<T>(
  { context }: HttpRequest,
  requestTimeoutSeconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (context.released) throw new SignerError('client_closed'); // while its body was read
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const controller = new AbortController();
  const abandon = (reason: 'request_timeout' | 'client_closed'): void => {
    const error = new SignerError(
      reason,
      reason === 'request_timeout' ? { hint: 'no signature is sent for this request' } : {},
    );
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

function signed({ headers, context }: HttpRequest, signature: Uint8Array, share: KeyShare | undefined): SuccessAnswer {
  if (share !== undefined) {
    assert(context.signingRoot !== undefined, 'what is signed has a root');
    const partial: PartialSignature = {
      participant_id: String(share.participantId),
      signing_root: encodeHex(context.signingRoot),
      signature: encodeHex(signature),
    };
    return { status: 200, headers: {}, contentType: 'application/json', body: JSON.stringify(partial) };
  }
  return { status: 200, headers: {}, ...signatureAnswer(signature, answerFormat(headers.accept)) };
}

// The whole list or no answer (specification/signing.md#public-keys). A client that is pointed at a participant by
// mistake must not take its shares for keys.

const NO_HIGH_WATERMARK = {};

export function mountPublicKeys(app: FastifyInstance, keys: Pick<KeyStore, 'publicKeys' | 'shareOf'>): void {
  const access = { kind: 'scope', scope: 'public_keys', namesKey: false, needsSigning: true } as const;
  const options = { config: { access: { ...access, listsKeys: true } }, exposeHeadRoute: true } as const;
  app.get('/api/v1/eth2/publicKeys', options, async (request, reply) => {
    const { access: rules } = callerOf(request);
    const isVisible = (publicKey: string) => keys.shareOf(publicKey) === undefined && canSignWith(rules, publicKey);
    const visible = keys.publicKeys().filter(isVisible);
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(visible));
  });
  const config = { access: { ...access, needsSigning: false } };
  app.get('/api/v1/eth2/highWatermark', { config }, async (_request, reply) => sendJson(reply, 200, NO_HIGH_WATERMARK));
}
