// Decides what the headers of a request can decide, before a byte of its body is read (order of
// specification/signing.md#refusal-order); and again after each wait and with the whole body: a token may have been
// revoked meanwhile.

import { canonicalPublicKey } from '../../common/formats/hex.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { Authenticator, Caller } from '../auth/authenticator.ts';
import { admitsRoute, evaluateBeforeBody } from '../auth/evaluate.ts';
import { parseAuthorization } from '../auth/tokens.ts';
import type { KeyStore } from '../keys/store.ts';
import { createBodyBudget } from './body-budget.ts';
import { clientCertificateOf, type HttpRequest, headerValues, isAllowed, type RouteAccess } from './context.ts';
import { largestEnvelope, largestEnvelopeOf } from './envelopes.ts';
import type { OriginRefusal } from './origins.ts';

const BODY_TIMEOUT_MS = 30_000;
/** How much an audit line shows of an identifier that is no public key. */
const MAX_SHOWN_CHARACTERS = 100;

interface AdmissionDependencies {
  readonly maxRequestBodyBytes: number;
  readonly authenticator: Authenticator;
  readonly keys: Pick<KeyStore, 'find' | 'state'>;
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly onAuthRejection: (reason: ErrorReason) => void;
  readonly originRefusal: OriginRefusal;
}

export interface Admission {
  admit(request: HttpRequest): ErrorReason | undefined;
  /** @returns bytes that the body may have now @throws SignerError `body_too_large`, `overloaded`, `client_closed` */
  bodyGrows(request: HttpRequest, bytes: number): number;
  bodyRead(request: HttpRequest, bytes: number): void;
  /** After a wait or a whole body. From here on the request has the access that its caller has now. */
  readmit(request: HttpRequest): ErrorReason | undefined;
  release(request: HttpRequest): void;
}

export function createAdmission(dependencies: AdmissionDependencies): Admission {
  const { maxRequestBodyBytes } = dependencies;
  const budget = createBodyBudget(maxRequestBodyBytes);

  return {
    admit(request) {
      const { access, streamsBody } = request.context;
      const announced = streamsBody ? 0 : announcedBytes(request.headers);
      const isLarge = announced > maxRequestBodyBytes;
      if (isLarge && announced > largestEnvelope(access)) return 'body_too_large';
      const refused = accessRefusal(request, access, dependencies);
      const mayCome = refused === undefined || refused === 'starting';
      const isTooLarge = isLarge && (!mayCome || announced > largestEnvelopeOf(request.context));
      const refusal = isTooLarge ? 'body_too_large' : refused;
      if (refusal === undefined && !streamsBody) boundBodyTime(request);
      return refusal;
    },
    bodyGrows(request, bytes) {
      const { context } = request;
      if (context.released) throw new SignerError('client_closed');
      const limit = bytes > maxRequestBodyBytes ? largestEnvelopeOf(context) : maxRequestBodyBytes;
      if (bytes > limit) throw new SignerError('body_too_large');
      const room = budget.grow(context, bytes, limit);
      if (room === 0) throw new SignerError('overloaded', { hint: 'request bodies take up all the memory they may' });
      return room;
    },
    bodyRead({ context }, bytes) {
      clearTimeout(context.bodyDeadline);
      budget.shrink(context, bytes);
    },
    readmit: (request) => changedRefusal(request, dependencies),
    release({ context }) {
      context.released = true;
      clearTimeout(context.bodyDeadline);
      budget.shrink(context, 0);
    },
  };
}

function boundBodyTime({ headers, context, raw }: HttpRequest): void {
  const hasBody = headers['transfer-encoding'] !== undefined || announcedBytes(headers) > 0;
  if (!hasBody || context.caller === undefined) return;
  context.bodyDeadline = setTimeout(() => raw.socket.destroy(), BODY_TIMEOUT_MS);
}

function announcedBytes({ 'content-length': length }: HttpRequest['headers']): number {
  return length === undefined ? 0 : Number(length);
}

function accessRefusal(
  request: HttpRequest,
  access: RouteAccess | undefined,
  dependencies: AdmissionDependencies,
): ErrorReason | undefined {
  if (access === undefined) return 'not_found'; // the handler of unknown paths
  if (access.kind === 'open') return undefined;
  const unservable = stateRefusal(access, dependencies);
  if (unservable !== undefined) return unservable;
  const authRefusal = authenticate(request, access, dependencies) ?? dependencies.originRefusal(request.headers);
  if (authRefusal !== undefined) {
    dependencies.onAuthRejection(authRefusal);
    return authRefusal;
  }
  if (access.kind !== 'scope') return undefined;
  if (access.listsKeys === true) return dependencies.keys.state === 'loading' ? 'starting' : undefined;
  return access.namesKey ? keyRefusal(request, dependencies) : undefined;
}

function stateRefusal(
  access: Exclude<RouteAccess, { kind: 'open' }>,
  { signingRefusal }: AdmissionDependencies,
): ErrorReason | undefined {
  const refusal = signingRefusal();
  if (refusal === undefined) return undefined;
  if (access.kind === 'scope' && access.needsSigning) return refusal;
  const servedStale = access.kind === 'scope' && access.whileStale === true;
  return refusal === 'state_stale' && !servedStale ? refusal : undefined;
}

function changedRefusal(request: HttpRequest, dependencies: AdmissionDependencies): ErrorReason | undefined {
  const { access, caller } = request.context;
  if (access === undefined || access.kind === 'open' || caller === undefined) return undefined;
  // What is signed is asked for later, before its record and before its release.
  const isAskedLater = access.kind === 'scope' && access.scope === 'sign';
  const unservable = isAskedLater ? undefined : stateRefusal(access, dependencies);
  if (unservable !== undefined && unservable !== 'shutting_down') return unservable;
  const certificate = clientCertificateOf(request.raw.socket);
  const outcome = dependencies.authenticator.current(caller, request.context.peerAddress, certificate);
  if (outcome.kind === 'caller') {
    if (outcome.caller === caller) return undefined;
    request.context.caller = outcome.caller;
    if (isAdmitted(request, outcome.caller, access)) return undefined;
  }
  const reason = outcome.kind === 'refused' ? outcome.reason : 'denied';
  if (reason === 'auth_sealed' && isAskedLater) return 'sealed';
  dependencies.onAuthRejection(reason);
  return reason;
}

function authenticate(
  request: HttpRequest,
  access: Exclude<RouteAccess, { kind: 'open' }>,
  { authenticator }: AdmissionDependencies,
): ErrorReason | undefined {
  const credential = parseAuthorization(headerValues(request.raw, 'authorization'));
  // Never a forwarding header (specification/authorization.md#source-networks).
  const certificate = clientCertificateOf(request.raw.socket);
  const outcome = authenticator.authenticate(credential, request.context.peerAddress, certificate);
  if (outcome.kind === 'refused') return outcome.reason;
  request.context.caller = outcome.caller;
  return isAdmitted(request, outcome.caller, access) ? undefined : 'denied';
}

function isAdmitted(request: HttpRequest, caller: Caller, access: Exclude<RouteAccess, { kind: 'open' }>): boolean {
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
  request: HttpRequest,
  { access: rules, management }: Caller,
  access: RouteAccess & { kind: 'scope' },
): boolean {
  if (access.orManagement === true && management) return true;
  if (access.orScope !== undefined && admitsRoute(rules, access.orScope).allowed) return true;
  if (!access.namesKey) return isAllowed(request, admitsRoute(rules, access.scope));
  const { identifier = '' } = request.params as { identifier?: string };
  const publicKey = canonicalPublicKey(identifier) ?? identifier.slice(0, MAX_SHOWN_CHARACTERS).toLowerCase();
  request.context.publicKey = publicKey;
  return isAllowed(request, evaluateBeforeBody(rules, { scope: access.scope, publicKey }));
}

/** After the policy, so that a client that may not use a key does not learn whether it is here. */
function keyRefusal(request: HttpRequest, { keys }: AdmissionDependencies): ErrorReason | undefined {
  const { publicKey } = request.context;
  if (publicKey !== undefined && keys.find(publicKey) !== undefined) return undefined;
  return keys.state === 'loading' ? 'starting' : 'unknown_key';
}
