// What is decided when a request's headers are in, before a byte of its body is read, in the order of decisions.md
// section 2: size 413, sealed or stale 503, credentials 401, policy 403, unknown key 404. A flood is refused here.

import assert from 'node:assert/strict';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorReason } from '../api/errors.ts';
import { canonicalPublicKey } from '../api/hex.ts';
import type { Authenticator, Caller } from '../auth/authenticator.ts';
import { parseAuthorization } from '../auth/credentials.ts';
import { admitsRoute, type Decision, evaluateBeforeBody } from '../auth/evaluate.ts';
import type { KeyStore } from '../keys/store.ts';
import type { RouteAccess } from './context.ts';
import { refuse } from './replies.ts';

/** Bytes of request bodies in flight at most, over all connections. */
export const BODY_BUDGET_BYTES = 256 * 1024 * 1024;
/** Of an identifier that is no public key. */
const MAX_SHOWN_CHARACTERS = 100;

export interface AdmissionDependencies {
  readonly maxRequestBodyBytes: number;
  readonly authenticator: Authenticator;
  readonly keys: Pick<KeyStore, 'find' | 'state'>;
  /** Why nothing may be signed now, or undefined. */
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly onAuthRejection: (reason: ErrorReason) => void;
}

export interface Admission {
  /** Undefined when the request may go on; otherwise the reply has been sent. */
  admit(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined;
  /** The body is here: it holds what it is, no longer what it could have been. */
  bodyRead(request: FastifyRequest, bytes: number): void;
  /** Give back what the request holds of the body budget. */
  release(request: FastifyRequest): void;
}

export function createAdmission(dependencies: AdmissionDependencies): Admission {
  let bodyBytesInFlight = 0;

  const reserve = (request: FastifyRequest, bytes: number): void => {
    bodyBytesInFlight += bytes - request.context.bodyReservation;
    request.context.bodyReservation = bytes;
  };
  const bodyRefusal = (request: FastifyRequest): ErrorReason | undefined => {
    if (request.routeOptions.config.streamsBody === true) return undefined; // never in memory as a whole
    const most = largestBodyBytes(request, dependencies.maxRequestBodyBytes);
    if (most > dependencies.maxRequestBodyBytes) return 'body_too_large';
    if (bodyBytesInFlight + most > BODY_BUDGET_BYTES) return 'overloaded';
    reserve(request, most);
    return undefined;
  };

  return {
    admit(request, reply) {
      const access = request.routeOptions.config.access;
      const reason = bodyRefusal(request) ?? accessRefusal(request, access, dependencies);
      return reason === undefined ? undefined : refuse(request, reply, reason);
    },
    bodyRead: (request, bytes) => reserve(request, bytes),
    release: (request) => reserve(request, 0),
  };
}

/** As announced; a body of unannounced length (chunked) may become as large as is allowed. */
function largestBodyBytes(request: FastifyRequest, maxRequestBodyBytes: number): number {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined) return maxRequestBodyBytes;
  return length === undefined ? 0 : Number(length);
}

function accessRefusal(
  request: FastifyRequest,
  access: RouteAccess | undefined,
  dependencies: AdmissionDependencies,
): ErrorReason | undefined {
  if (access === undefined) return 'not_found'; // the handler of unknown paths
  if (access.kind === 'open') return undefined;
  if (access.kind === 'scope' && access.needsSigning) {
    const signingRefusal = dependencies.signingRefusal();
    if (signingRefusal !== undefined) return signingRefusal;
  }
  const authRefusal = authenticate(request, access, dependencies);
  if (authRefusal !== undefined) {
    dependencies.onAuthRejection(authRefusal);
    return authRefusal;
  }
  return access.kind === 'scope' && access.namesKey ? keyRefusal(request, dependencies) : undefined;
}

function authenticate(
  request: FastifyRequest,
  access: Exclude<RouteAccess, { kind: 'open' }>,
  { authenticator }: AdmissionDependencies,
): ErrorReason | undefined {
  const credential = parseAuthorization(request.raw.headersDistinct['authorization']);
  // Authorization sees the raw TCP peer only, never a proxy header (service.md, Authentication 9).
  const outcome = authenticator.authenticate(credential, request.raw.socket.remoteAddress);
  if (outcome.kind === 'refused') return outcome.reason;
  request.context.caller = outcome.caller;
  return isAdmitted(request, outcome.caller, access) ? undefined : 'denied';
}

function isAdmitted(request: FastifyRequest, caller: Caller, access: Exclude<RouteAccess, { kind: 'open' }>): boolean {
  switch (access.kind) {
    case 'any_token':
      return true;
    case 'management':
      return caller.management;
    case 'scope':
      return allowedBefore(request, caller, access);
    default:
      return false;
  }
}

function allowedBefore(
  request: FastifyRequest,
  { access: rules, management }: Caller,
  access: RouteAccess & { kind: 'scope' },
): boolean {
  if (access.orManagement === true && management) return true;
  if (!access.namesKey) return isAllowed(request, admitsRoute(rules, access.scope));
  const { identifier = '' } = request.params as { identifier?: string };
  const publicKey = canonicalPublicKey(identifier) ?? identifier.slice(0, MAX_SHOWN_CHARACTERS).toLowerCase();
  request.context.publicKey = publicKey;
  return isAllowed(request, evaluateBeforeBody(rules, { scope: access.scope, publicKey }));
}

/** The accessor of the caller, on a route that is not open. */
export function actorOf({ context }: FastifyRequest): string {
  assert(context.caller !== undefined, 'admission lets nobody in without a caller');
  return context.caller.accessor;
}

/** Also leaves the name of the policy that denied for the audit line. */
export function isAllowed(request: FastifyRequest, decision: Decision): boolean {
  if (!decision.allowed && decision.why === 'denied_by_rule') request.context.deniedBy = decision.policy;
  return decision.allowed;
}

/** After the policy, so that whoever may not use a key does not learn whether it is here. */
function keyRefusal(request: FastifyRequest, { keys }: AdmissionDependencies): ErrorReason | undefined {
  const { publicKey } = request.context;
  if (publicKey !== undefined && keys.find(publicKey) !== undefined) return undefined;
  return keys.state === 'loading' ? 'starting' : 'unknown_key';
}
