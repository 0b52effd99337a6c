// POST /api/v1/eth2/sign/{identifier}: bytes to a typed request, one answer. Who may use the key was decided before the
// body was read (admission.ts); which operation it is, and whether that is allowed, is decided here.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { SignerError } from '../../api/errors.ts';
import { answerFormat, signatureAnswer } from '../../api/negotiate.ts';
import { rememberedRequests } from '../../api/remembered-requests.ts';
import type { SignRequest } from '../../api/sign-request.ts';
import { evaluate } from '../../auth/evaluate.ts';
import type { LoadedKey } from '../../keys/store.ts';
import type { Log } from '../../observe/log.ts';
import { rememberedRoots } from '../../signing/remembered-roots.ts';
import { type SigningDependencies, type SignOutcome, sign } from '../../signing/sign.ts';
import { isAllowed } from '../admission.ts';
import type { AppDependencies, AppOptions } from '../app.ts';
import { signRouteSchema } from '../openapi.ts';
import { refuse } from '../replies.ts';

export function mountSign(
  app: FastifyInstance,
  { requestTimeoutSeconds }: Pick<AppOptions, 'requestTimeoutSeconds'>,
  dependencies: AppDependencies,
): void {
  const parse = rememberedRequests();
  const signing: SigningDependencies = {
    ...dependencies.signing,
    rootOf: rememberedRoots(dependencies.signing.network),
  };
  const access = { kind: 'scope', scope: 'sign', namesKey: true, needsSigning: true } as const;
  app.post('/api/v1/eth2/sign/:identifier', { config: { access }, schema: signRouteSchema }, async (request, reply) => {
    const parsed = parse(request.body instanceof Uint8Array ? request.body : new Uint8Array());
    if (parsed.kind === 'refused') return refuse(request, reply, parsed.reason, parsed.hint);
    request.context.operation = parsed.request.operation;
    if (!operationAllowed(request, parsed.request)) return refuse(request, reply, 'denied');

    const key = dependencies.keys.find(request.context.publicKey ?? '');
    if (key === undefined) return refuse(request, reply, 'unknown_key'); // removed while the body came in
    const outcome = await signInTime(request, reply, { parsed: parsed.request, key, requestTimeoutSeconds }, signing);
    return answer(request, reply, outcome, dependencies.log);
  });
}

function operationAllowed(request: FastifyRequest, { operation }: SignRequest): boolean {
  const { caller, publicKey } = request.context;
  if (caller === undefined || publicKey === undefined) return false;
  return isAllowed(request, evaluate(caller.access, { scope: 'sign', publicKey, operation }));
}

/** Gives up when the client goes away or the time is over; a signature made after that is dropped, not sent. */
async function signInTime(
  { context: { span } }: FastifyRequest,
  reply: FastifyReply,
  work: { readonly parsed: SignRequest; readonly key: LoadedKey; readonly requestTimeoutSeconds: number },
  signing: SigningDependencies,
): Promise<SignOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<SignOutcome>();
  const controller = new AbortController();
  const abandon = (reason: 'request_timeout' | 'client_closed'): void => {
    const error = new SignerError(reason);
    controller.abort(error);
    reject(error);
  };
  const timer = setTimeout(abandon, work.requestTimeoutSeconds * 1000, 'request_timeout');
  const onClose = (): void => abandon('client_closed');
  reply.raw.once('close', onClose);
  try {
    // Whichever is first settles the promise, as Promise.race would for twice the time.
    sign(work.parsed, work.key, { signal: controller.signal, span }, signing).then(resolve, reject);
    return await promise;
  } finally {
    clearTimeout(timer);
    reply.raw.off('close', onClose);
  }
}

function answer(request: FastifyRequest, reply: FastifyReply, outcome: SignOutcome, log: Log): FastifyReply {
  if (outcome.kind === 'refused') {
    if (outcome.detail !== undefined) {
      log.warn({ request_id: request.id, key: request.context.publicKey, ...outcome.detail }, outcome.reason);
    }
    return refuse(request, reply, outcome.reason);
  }
  const { contentType, body } = signatureAnswer(outcome.signature, answerFormat(request.headers.accept));
  return reply.type(contentType).serializer(asItIs).send(body);
}

/**
 * With a serializer Fastify leaves the content type as it is: to a JSON text without one it adds a charset. Sent as a text,
 * because node:http puts head and text into one write; bytes would be a second one.
 */
function asItIs(body: string): string {
  return body;
}
