// Decides what can be decided when the headers of a request have arrived, before a byte of its body is read. The order
// is that of specification/signing.md#refusal-order: size 413, sealed or stale 503, credentials 401, policy 403,
// unknown key 404. So a flood is refused here. The routes limit the body while it arrives. When the body is complete,
// they decide again: a token that was revoked, or a signer that was sealed or lost its state meanwhile, gets nothing
// done.

import { canonicalPublicKey } from '../../formats/hex.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import { MAX_ENVELOPE_BODY_BYTES } from '../api/limits.ts';
import type { Authenticator, Caller } from '../auth/authenticator.ts';
import { parseAuthorization } from '../auth/credentials.ts';
import { admitsRoute, evaluate, evaluateBeforeBody } from '../auth/evaluate.ts';
import type { KeyStore } from '../keys/store.ts';
import { createBodyBudget } from './bodies/budget.ts';
import { isAllowed } from './caller.ts';
import type { HttpRequest, RouteAccess } from './context.ts';
import { headerValues } from './header-values.ts';
import { clientCertificateOf } from './listeners/connections.ts';
import type { ForeignHost, ForeignOrigin } from './origins.ts';

/** Time for an admitted client to send the whole body. */
const BODY_TIMEOUT_MS = 30_000;
/** How much an audit line shows of an identifier that is no public key. */
const MAX_SHOWN_CHARACTERS = 100;

export interface AdmissionDependencies {
  readonly maxRequestBodyBytes: number;
  readonly authenticator: Authenticator;
  readonly keys: Pick<KeyStore, 'find' | 'state'>;
  /** Why nothing may be signed now, or undefined. */
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly onAuthRejection: (reason: ErrorReason) => void;
  /**
   * Web pages of other origins are refused: a browser would send their requests with the network position of its user.
   */
  readonly isForeignOrigin: ForeignOrigin;
  /**
   * A page may give its own name the address of the signer (DNS rebinding): then its requests name it as their host.
   */
  readonly isForeignHost: ForeignHost;
}

export interface Admission {
  /** Undefined when the request may go on; otherwise why it is refused. */
  admit(request: HttpRequest): ErrorReason | undefined;
  /**
   * The body has become so long. @returns how much memory it may take up now, at least `bytes`
   * @throws SignerError `body_too_large`; `overloaded` when other bodies leave no room for it; `client_closed` after
   * its end
   */
  bodyGrows(request: HttpRequest, bytes: number): number;
  /** The whole body is here. */
  bodyRead(request: HttpRequest, bytes: number): void;
  /**
   * Whether the request may be acted on, now that its body is here: why not, or undefined. From here on it has the
   * access that its caller has now.
   */
  readmit(request: HttpRequest): ErrorReason | undefined;
  /** Give back what the request holds of the body budget. */
  release(request: HttpRequest): void;
}

export function createAdmission(dependencies: AdmissionDependencies): Admission {
  const { maxRequestBodyBytes } = dependencies;
  const budget = createBodyBudget(maxRequestBodyBytes);

  return {
    admit(request) {
      const { access, streamsBody } = request.context;
      const announced = streamsBody ? 0 : announcedBytes(request.headers);
      if (announced > largestBody(access, dependencies)) return 'body_too_large';
      const refused = accessRefusal(request, access, dependencies);
      // Who may not sign envelopes, or is not known, is told what everybody is told of a body of this size.
      const isTooLarge = announced > maxRequestBodyBytes && (refused !== undefined || !allowsEnvelope(request));
      const refusal = isTooLarge ? 'body_too_large' : refused;
      if (refusal === undefined && !streamsBody) boundBodyTime(request);
      return refusal;
    },
    bodyGrows(request, bytes) {
      const { context } = request;
      if (context.released) throw new SignerError('client_closed');
      const isLarge = bytes > maxRequestBodyBytes && allowsEnvelope(request);
      const limit = isLarge ? largestBody(context.access, dependencies) : maxRequestBodyBytes;
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

/** The body of an open route is never read. */
function boundBodyTime({ headers, context, raw }: HttpRequest): void {
  const hasBody = headers['transfer-encoding'] !== undefined || announcedBytes(headers) > 0;
  if (!hasBody || context.caller === undefined) return;
  context.bodyDeadline = setTimeout(() => raw.socket.destroy(), BODY_TIMEOUT_MS);
}

/**
 * What the largest body of a route may have: of a signing request that of an envelope, whatever the configuration gives
 * the others.
 */
function largestBody(access: RouteAccess | undefined, { maxRequestBodyBytes }: AdmissionDependencies): number {
  return signsWithOneKey(access) ? Math.max(maxRequestBodyBytes, MAX_ENVELOPE_BODY_BYTES) : maxRequestBodyBytes;
}

function signsWithOneKey(access: RouteAccess | undefined): boolean {
  return access?.kind === 'scope' && access.scope === 'sign' && access.namesKey;
}

/** Whether the caller may send an envelope. Whether the body is one is known when it is here (routes/sign.ts). */
function allowsEnvelope({ context: { access, caller, publicKey } }: HttpRequest): boolean {
  if (!signsWithOneKey(access) || caller === undefined || publicKey === undefined) return false;
  return evaluate(caller.access, { scope: 'sign', publicKey, operation: 'EXECUTION_PAYLOAD_ENVELOPE' }).allowed;
}

/** 0 for a body of unannounced length (chunked), which shows its size only at its end (bodyGrows). */
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
  const authRefusal = authenticate(request, access, dependencies) ?? originRefusal(request, dependencies);
  if (authRefusal !== undefined) {
    dependencies.onAuthRejection(authRefusal);
    return authRefusal;
  }
  return access.kind === 'scope' && access.namesKey ? keyRefusal(request, dependencies) : undefined;
}

/** A stale replica honours no token: it may have been revoked where this replica does not see it. */
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

/** No second look at the credential: the caller is known by its accessor. */
function changedRefusal(request: HttpRequest, dependencies: AdmissionDependencies): ErrorReason | undefined {
  const { access, caller } = request.context;
  if (access === undefined || access.kind === 'open' || caller === undefined) return undefined;
  const unservable = stateRefusal(access, dependencies);
  // A signer that shuts down finishes what it has admitted.
  if (unservable !== undefined && unservable !== 'shutting_down') return unservable;
  const certificate = clientCertificateOf(request.raw.socket);
  const outcome = dependencies.authenticator.current(caller, request.context.peerAddress, certificate);
  if (outcome.kind === 'caller') {
    if (outcome.caller === caller) return undefined;
    request.context.caller = outcome.caller;
    if (isAdmitted(request, outcome.caller, access)) return undefined;
  }
  const reason = outcome.kind === 'refused' ? outcome.reason : 'denied';
  dependencies.onAuthRejection(reason);
  return reason;
}

function authenticate(
  request: HttpRequest,
  access: Exclude<RouteAccess, { kind: 'open' }>,
  { authenticator }: AdmissionDependencies,
): ErrorReason | undefined {
  const credential = parseAuthorization(headerValues(request.raw, 'authorization'));
  // Authorization sees the connection's peer and certificate only, never a forwarding header
  // (specification/authorization.md#source-networks).
  const certificate = clientCertificateOf(request.raw.socket);
  const outcome = authenticator.authenticate(credential, request.context.peerAddress, certificate);
  if (outcome.kind === 'refused') return outcome.reason;
  request.context.caller = outcome.caller;
  return isAdmitted(request, outcome.caller, access) ? undefined : 'denied';
}

function originRefusal(
  { headers }: HttpRequest,
  { isForeignHost, isForeignOrigin }: AdmissionDependencies,
): ErrorReason | undefined {
  if (isForeignHost(headers)) return 'foreign_host';
  return isForeignOrigin(headers) ? 'foreign_origin' : undefined;
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

/** After the policy, so that whoever may not use a key does not learn whether it is here. */
function keyRefusal(request: HttpRequest, { keys }: AdmissionDependencies): ErrorReason | undefined {
  const { publicKey } = request.context;
  if (publicKey !== undefined && keys.find(publicKey) !== undefined) return undefined;
  return keys.state === 'loading' ? 'starting' : 'unknown_key';
}
