// The HTTP application: hooks in the order of refusal, the routes, and one shape of error. It knows nothing of sockets.

import type { ServerResponse } from 'node:http';
import fastify, { type FastifyInstance } from 'fastify';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { Tracing } from '../../common/observe/tracing.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { ClientAddressOptions } from '../auth/client-address.ts';
import type { StatefulAuthenticator } from '../auth/stateful/stateful.ts';
import type { KeyManagementParts } from '../keys/management/management.ts';
import type { KeyStore } from '../keys/store.ts';
import type { SigningDependencies } from '../sign/dependencies.ts';
import { envelopeReader } from '../sign/envelopes/envelope-reader.ts';
import { type Admission, createAdmission } from './admission.ts';
import { type Audit, createAudit, type HttpObserver } from './audit.ts';
import { acceptAnyBodyAsBytes } from './body.ts';
import { callerTurns, type Proceed } from './caller-turns.ts';
import { type HttpRequest, NO_ROUTE, newContext, peerAddressOf, type Route, requestId } from './context.ts';
import type { RecordDecision } from './decisions.ts';
import { keepEscapes } from './escapes.ts';
import { type HeldRequests, heldRequests } from './held.ts';
import { trackOpenRequests } from './open-requests.ts';
import { allowOrigins, originRefusals } from './origins.ts';
import { headerTimes, settlePlace } from './places.ts';
import { answerClientError, refuseRequest, sendError } from './refusals.ts';
import { toSignerError } from './replies.ts';
import type { RequiredAudit } from './required-audit.ts';
import { type AttestationRoute, mountAttestation } from './routes/attestation.ts';
import { mountAuthPolicies, mountAuthTokens } from './routes/auth.ts';
import { type ChamberRoutes, mountChamber } from './routes/chamber.ts';
import type { GenerateRoutes } from './routes/chamber-keys-generate.ts';
import { mountHealth, type Readiness } from './routes/health.ts';
import { type ChamberKeyLimits, mountChamberKeys } from './routes/keys.ts';
import { type KeyManagerLimits, mountKeystores } from './routes/keystores.ts';
import { mountReceipts, type ReceiptRoutes } from './routes/receipts.ts';
import { createSignHandler, mountPublicKeys, mountSign, type SignHandler } from './routes/sign.ts';
import { createSignBatchHandler, mountSignBatch } from './routes/sign-batch.ts';
import { mountSlashingProtection, type SlashingRecords } from './routes/slashing-protection.ts';

export interface AppOptions {
  readonly maxRequestBodyBytes: number;
  readonly requestTimeoutSeconds: number;
  readonly headersTimeoutMs?: number;
  readonly corsAllowedOrigins: readonly string[] | null;
  readonly allowedHosts: readonly string[] | null;
  readonly clientAddress: ClientAddressOptions;
}

export interface KeyRoutes {
  readonly management: KeyManagementParts;
  readonly keyManager: KeyManagerLimits | undefined;
  readonly chamber: ChamberKeyLimits;
  readonly generate: GenerateRoutes;
}

export type DescribeRoutes = (app: FastifyInstance) => Promise<void>;

export type MountRoutes = (app: FastifyInstance) => void;

export type MountAccounts = (app: FastifyInstance, keys: KeyStore) => void;

/** The steps of a boot open most of it; each route and hook reads what it needs. */
export interface AppParts extends SigningDependencies {
  readonly authenticator: Authenticator;
  readonly stateful?: StatefulAuthenticator | undefined;
  readonly keys: KeyStore;
  /** Where shares of distributed keys may be, which have routes then. */
  readonly mountAccounts?: MountAccounts | undefined;
  readonly readiness: Readiness;
  readonly chamber: ChamberRoutes;
  readonly slashingRecords: SlashingRecords;
  readonly keyRoutes: KeyRoutes;
  readonly attestation?: AttestationRoute | undefined;
  readonly receipts?: { readonly routes: ReceiptRoutes; readonly record: RecordDecision } | undefined;
  readonly mountOwn?: MountRoutes | undefined;
  readonly describeRoutes?: DescribeRoutes | undefined;
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly observer: HttpObserver;
  readonly onTurns?: (waiting: () => number) => void;
  readonly tracing?: Tracing | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly auditLog?: Log;
  readonly requiredAudit?: RequiredAudit | undefined;
}

const KEEP_ALIVE_SECONDS = 75;
const MAX_PATH_PARAMETER_CHARACTERS = 256;
const MAX_LIST_HELD_MS = 60_000;

export async function buildApp(options: AppOptions, parts: AppParts): Promise<FastifyInstance> {
  const app = fastify({
    logger: false,
    http: headerTimes(options.headersTimeoutMs),
    genReqId: requestId,
    bodyLimit: options.maxRequestBodyBytes,
    keepAliveTimeout: KEEP_ALIVE_SECONDS * 1000,
    requestTimeout: 0, // bodies have a deadline of their own each (admission.ts): an import takes longer than a request
    forceCloseConnections: 'idle',
    return503OnClosing: false, // listeners/listen.ts answers in the shape of every other error
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    clientErrorHandler: answerClientError,
    routerOptions: {
      maxParamLength: MAX_PATH_PARAMETER_CHARACTERS,
      ignoreTrailingSlash: true, // both as common/formats/request-path.ts
      ignoreDuplicateSlashes: true,
    },
    frameworkErrors: (error, request, reply) => {
      request.context = newContext(NO_ROUTE, parts.clock.monotonic(), peerAddressOf(request.raw.socket));
      reply.header('x-request-id', request.id);
      void sendError(request, reply, toSignerError(error));
    },
  });
  installContext(app, parts.clock);
  await allowOrigins(app, options.corsAllowedOrigins); // before admission: a preflight carries no credentials
  const { admission, audit, held } = installHooks(app, options, parts);
  const envelopes = envelopeReader({ log: parts.log, timeoutSeconds: options.requestTimeoutSeconds });
  app.addHook('onClose', () => envelopes.close());
  const onAuthRejection = parts.observer.authRejected;
  await parts.describeRoutes?.(app);
  mountHealth(app, parts.readiness);
  mountPublicKeys(app, parts.keys);
  const recordDecision = parts.receipts?.record;
  const signing = { ...parts, audit, envelopes, held, onAuthRejection, readmit: admission.readmit, recordDecision };
  const handleOne = audited(createSignHandler(options, signing), audit);
  const handleMany = audited(createSignBatchHandler(options, signing), audit);
  mountSign(app, handleOne, 'whole');
  mountSignBatch(app, handleMany, 'whole');
  if (parts.mountAccounts !== undefined) {
    parts.mountAccounts(app, parts.keys);
    mountSign(app, handleOne, 'share');
    mountSignBatch(app, handleMany, 'share');
  }
  mountSlashingProtection(app, parts.slashingRecords, admission);
  mountChamber(app, parts.chamber);
  await mountKeys(app, parts.keyRoutes);
  parts.mountOwn?.(app);
  if (parts.attestation !== undefined) mountAttestation(app, parts.attestation);
  if (parts.receipts !== undefined) mountReceipts(app, parts.receipts.routes);
  if (parts.stateful !== undefined) {
    mountAuthPolicies(app, parts.stateful);
    mountAuthTokens(app, parts.stateful, parts.clock);
  }
  await app.ready();
  return app;
}

function audited(handle: SignHandler, audit: Pick<Audit, 'confirm'>): SignHandler {
  return async (request, body, form) => {
    const answer = await handle(request, body, form);
    await audit.confirm(request);
    return answer;
  };
}

/** Routes parse what they take, and have no schemas. Given nothing, fastify loads two packages that compile them. */
function noSchemas(): never {
  throw new Error('no route has a schema');
}

async function mountKeys(
  app: FastifyInstance,
  { management, keyManager, chamber, generate }: KeyRoutes,
): Promise<void> {
  mountChamberKeys(app, chamber, management);
  const { options: _options, ...routes } = generate;
  if (Object.values(routes).some((route) => route !== undefined)) {
    const { mountChamberKeysGenerate } = await import('./routes/chamber-keys-generate.ts');
    mountChamberKeysGenerate(app, generate, management);
  }
  if (keyManager !== undefined) mountKeystores(app, keyManager, management);
}

function installContext(app: FastifyInstance, clock: Clock): void {
  app.decorateRequest('context');
  app.addHook('onRequest', (request, reply, done) => {
    const { config, url } = request.routeOptions; // Fastify makes both again at each access
    const route: Route = { url, access: config.access, streamsBody: config.streamsBody === true };
    request.context = newContext(route, clock.monotonic(), peerAddressOf(request.raw.socket));
    reply.header('x-request-id', request.id);
    done();
  });
}

function installHooks(
  app: FastifyInstance,
  options: AppOptions,
  parts: AppParts,
): { readonly admission: Admission; readonly audit: Audit; readonly held: HeldRequests } {
  const { log } = parts;
  const audit = createAudit(options.clientAddress, {
    ...parts,
    log: parts.auditLog ?? log,
    required: parts.requiredAudit,
  });
  const admission = createAdmission({
    ...options,
    ...parts,
    onAuthRejection: parts.observer.authRejected,
    originRefusal: originRefusals(options.corsAllowedOrigins, options.allowedHosts),
  });
  app.addHook('onRoute', (route) => {
    if (route.config?.access === undefined && route.method !== 'OPTIONS') {
      throw new Error(`${String(route.method)} ${route.url} does not state who may use it`);
    }
  });
  keepEscapes(app, (request, reply, error) => {
    parts.observer.routeFailed('escaped');
    log.error({ request_id: request.id, err: error }, 'a route left a fault behind');
    if (!reply.sent) sendError(request, reply, new SignerError('internal_error', { cause: error }));
  });
  const turns = callerTurns({ nextTurn: setImmediate, monotonic: () => parts.clock.monotonic() });
  const held = heldRequests(parts);
  parts.onTurns?.(() => turns.waiting + held.size);
  const openRequests = trackOpenRequests((request, response) => {
    admission.release(request);
    request.context.onEnd?.();
    audit.record(request, response);
    endTrace(request, response);
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (!openRequests.begin(request, reply.raw)) return;
    request.context.span = parts.tracing?.startRequest({ method: request.method, route: request.context.route });
    const proceed: Proceed = (hasWaited) => {
      if (request.context.released) return; // its client is gone
      const changed = hasWaited ? admission.readmit(request) : undefined;
      if (changed === undefined) done();
      else refuseRequest(request, reply, changed);
    };
    const takeTurnUnless = (refusal: ErrorReason | undefined): void => {
      const { caller } = request.context;
      if (refusal !== undefined) refuseRequest(request, reply, refusal);
      else if (caller === undefined) done();
      else {
        settlePlace(request.raw.socket);
        if (!turns.takeTurn(caller.accessor, proceed)) refuseRequest(request, reply, 'overloaded');
      }
    };
    const refusal = admitted(request, admission);
    if (refusal !== 'starting') return takeTurnUnless(refusal);
    const [limitMs, isThere] = whileStarting(request, options, parts);
    const goOn = (): void => takeTurnUnless(admitted(request, admission));
    if (!held.hold(request, limitMs, isThere, goOn)) takeTurnUnless('overloaded');
  });
  acceptAnyBodyAsBytes(app, admission);
  app.setNotFoundHandler((request, reply) => refuseRequest(request, reply, 'not_found'));
  const wasLogged = oneLineWhileStarting();
  app.setErrorHandler((thrown, request, reply) =>
    sendError(request, reply, loggedFault(request, thrown, { ...parts, wasLogged })),
  );
  return { admission, audit, held };
}

/** How long a request is held for its keys, and whether its key is there. */
function whileStarting(
  { context: { access, publicKey } }: HttpRequest,
  { requestTimeoutSeconds }: AppOptions,
  { keys }: Pick<AppParts, 'keys'>,
): [limitMs: number, isThere: () => boolean] {
  if (access?.kind === 'scope' && access.listsKeys === true) return [MAX_LIST_HELD_MS, () => false];
  return [requestTimeoutSeconds * 1000, () => publicKey !== undefined && keys.find(publicKey) !== undefined];
}

function admitted(request: HttpRequest, admission: Admission): ErrorReason | undefined {
  const span = request.context.span?.child('auth');
  try {
    return admission.admit(request);
  } finally {
    span?.end();
  }
}

interface FaultParts extends Pick<AppParts, 'log' | 'observer'> {
  readonly wasLogged: (error: SignerError) => boolean;
}

function oneLineWhileStarting(): FaultParts['wasLogged'] {
  let isLogged = false;
  return ({ reason }) => {
    if (reason !== 'starting') return false;
    const wasBefore = isLogged;
    isLogged = true;
    return wasBefore;
  };
}

function loggedFault(request: HttpRequest, thrown: unknown, { log, observer, wasLogged }: FaultParts): SignerError {
  const error = toSignerError(thrown);
  if (error.reason === 'internal_error') {
    observer.routeFailed('thrown');
    log.error({ request_id: request.id, err: error.cause }, 'request failed');
  } else if (error.status === 503 && !wasLogged(error)) logFault(log, request.id, error);
  return error;
}

function endTrace({ context, id }: HttpRequest, response: ServerResponse): void {
  if (context.span === undefined) return;
  context.span.setAttribute('request_id', id);
  context.span.setAttribute('http.response.status_code', response.statusCode);
  if (context.operation !== undefined) context.span.setAttribute('operation', context.operation);
  if (context.reason !== undefined) context.span.setAttribute('reason', context.reason);
  context.span.end();
}

function logFault(log: Log, id: string, error: ReturnType<typeof toSignerError>): void {
  const cause = error.cause instanceof Error ? error.cause.message : undefined;
  log.warn({ request_id: id, reason: error.reason, cause, ...error.detail }, 'request could not be served');
}
