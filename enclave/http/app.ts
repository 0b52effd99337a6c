// The HTTP application: hooks in the order of refusal, the routes, and one shape of error. It knows nothing of sockets:
// listen.ts puts it behind listeners, tests use inject().

import cors from '@fastify/cors';
import fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { ErrorReason } from '../api/errors.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { ClientAddressOptions } from '../auth/client-address.ts';
import type { StatefulAuthenticator } from '../auth/stateful.ts';
import type { KeyStore } from '../keys/store.ts';
import type { Clock } from '../observe/clock.ts';
import type { Log } from '../observe/log.ts';
import type { Tracing } from '../observe/tracing.ts';
import type { SigningDependencies } from '../signing/sign.ts';
import { type Admission, createAdmission } from './admission.ts';
import { createAudit, type HttpObserver } from './audit.ts';
import { newContext, requestId } from './context.ts';
import { mountOpenApi } from './openapi.ts';
import { refuse, sendError, toSignerError } from './replies.ts';
import { mountAuthPolicies } from './routes/auth-policies.ts';
import { mountAuthTokens } from './routes/auth-tokens.ts';
import { type ChamberRoutes, mountChamber } from './routes/chamber.ts';
import { mountHealth, type Readiness } from './routes/health.ts';
import { mountPublicKeys } from './routes/public-keys.ts';
import { mountSign } from './routes/sign.ts';
import { mountSlashingProtection, type SlashingRecords } from './routes/slashing-protection.ts';

export interface AppOptions {
  readonly maxRequestBodyBytes: number;
  readonly requestTimeoutSeconds: number;
  /** null: no CORS. `['*']`: every origin. */
  readonly corsAllowedOrigins: readonly string[] | null;
  readonly clientAddress: ClientAddressOptions;
}

export interface AppDependencies {
  readonly authenticator: Authenticator;
  readonly keys: KeyStore;
  readonly signing: SigningDependencies;
  readonly readiness: Readiness;
  readonly chamber: ChamberRoutes;
  /** The stateful mode's authenticator, which then is `authenticator` too. Undefined: there is no Auth API. */
  readonly auth?: StatefulAuthenticator | undefined;
  readonly slashingRecords: SlashingRecords;
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly observer: HttpObserver;
  readonly tracing?: Tracing | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Longer than any client's idle time (wire.md, How clients behave). */
const KEEP_ALIVE_SECONDS = 75;
/** Time for a client to send one whole request: an import of slashing records is long. Only admitted callers send bodies. */
const RECEIVE_TIMEOUT_SECONDS = 600;
const MAX_PATH_PARAMETER_CHARACTERS = 256;

/** @throws Error when a route does not state who may use it. */
export async function buildApp(options: AppOptions, dependencies: AppDependencies): Promise<FastifyInstance> {
  const app = fastify({
    logger: false,
    genReqId: requestId,
    bodyLimit: options.maxRequestBodyBytes,
    keepAliveTimeout: KEEP_ALIVE_SECONDS * 1000,
    requestTimeout: RECEIVE_TIMEOUT_SECONDS * 1000,
    forceCloseConnections: 'idle',
    return503OnClosing: false, // listen.ts answers in the shape of every other error
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_PATH_PARAMETER_CHARACTERS, ignoreTrailingSlash: true },
    frameworkErrors: (error, request, reply) => {
      request.context = newContext(dependencies.clock.monotonic());
      void sendError(request, reply, toSignerError(error));
    },
  });
  installContext(app, dependencies.clock);
  await allowOrigins(app, options.corsAllowedOrigins); // before admission: a preflight carries no credentials
  installHooks(app, options, dependencies);
  await mountOpenApi(app);
  mountHealth(app, dependencies.readiness);
  mountPublicKeys(app, dependencies.keys);
  mountSign(app, options, dependencies);
  mountSlashingProtection(app, dependencies.slashingRecords);
  mountChamber(app, dependencies.chamber);
  if (dependencies.auth !== undefined) {
    mountAuthPolicies(app, dependencies.auth);
    mountAuthTokens(app, dependencies.auth, dependencies.clock);
  }
  await app.ready();
  return app;
}

function installContext(app: FastifyInstance, clock: Clock): void {
  app.decorateRequest('context');
  app.addHook('onRequest', (request, reply, done) => {
    request.context = newContext(clock.monotonic());
    reply.header('x-request-id', request.id);
    done();
  });
}

async function allowOrigins(app: FastifyInstance, origins: readonly string[] | null): Promise<void> {
  if (origins === null) return;
  await app.register(cors, { origin: origins.includes('*') ? '*' : [...origins], hideOptionsRoute: true });
}

function installHooks(app: FastifyInstance, options: AppOptions, dependencies: AppDependencies): void {
  const { log } = dependencies;
  const audit = createAudit(options.clientAddress, dependencies);
  const admission = createAdmission({
    maxRequestBodyBytes: options.maxRequestBodyBytes,
    authenticator: dependencies.authenticator,
    keys: dependencies.keys,
    signingRefusal: dependencies.signingRefusal,
    onAuthRejection: dependencies.observer.authRejected,
  });
  app.addHook('onRoute', (route) => {
    if (route.config?.access === undefined && route.method !== 'OPTIONS') {
      throw new Error(`${String(route.method)} ${route.url} does not state who may use it`);
    }
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (admission.admit(request, reply) === undefined) done();
  });
  acceptAnyBodyAsBytes(app, admission);
  app.addHook('onResponse', (request, reply, done) => {
    admission.release(request);
    audit.record(request, reply);
    done();
  });
  app.addHook('onRequestAbort', (request, done) => {
    admission.release(request);
    done();
  });
  app.setNotFoundHandler((request, reply) => refuse(request, reply, 'not_found'));
  app.setErrorHandler((thrown: FastifyError, request, reply) => {
    const error = toSignerError(thrown);
    if (error.reason === 'internal_error') log.error({ request_id: request.id, err: error.cause }, 'request failed');
    else if (error.status === 503) logFault(log, request.id, error);
    return sendError(request, reply, error);
  });
}

function logFault(log: Log, id: string, error: ReturnType<typeof toSignerError>): void {
  const cause = error.cause instanceof Error ? error.cause.message : undefined;
  log.warn({ request_id: id, reason: error.reason, cause, ...error.detail }, 'request could not be served');
}

/** Clients differ in the content types they send; every body is JSON and is parsed by its route. */
function acceptAnyBodyAsBytes(app: FastifyInstance, admission: Admission): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (request, body, done) => {
    admission.bodyRead(request, body.length);
    done(null, body);
  });
}
