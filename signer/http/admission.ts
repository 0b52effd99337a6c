// Decides what the headers of a request can decide, before a byte of its body is read (order of
// specification/signing.md#refusal-order); and again when the body is complete: a token may have been revoked
// meanwhile.

import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { canonicalPublicKey } from '../../common/formats/hex.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import { BODY_BUDGET_BYTES } from '../api/primitives.ts';
import type { Authenticator, Caller } from '../auth/authenticator.ts';
import { admitsRoute, evaluateBeforeBody } from '../auth/evaluate.ts';
import { parseAuthorization } from '../auth/tokens.ts';
import type { KeyStore } from '../keys/store.ts';
import {
  clientCertificateOf,
  type HttpRequest,
  headerValues,
  isAllowed,
  type RequestContext,
  type RouteAccess,
} from './context.ts';
import { largestEnvelope, largestEnvelopeOf } from './envelopes.ts';

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
  /** Once the body is here. From here on the request has the access that its caller has now. */
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

/** After the policy, so that whoever may not use a key does not learn whether it is here. */
function keyRefusal(request: HttpRequest, { keys }: AdmissionDependencies): ErrorReason | undefined {
  const { publicKey } = request.context;
  if (publicKey !== undefined && keys.find(publicKey) !== undefined) return undefined;
  return keys.state === 'loading' ? 'starting' : 'unknown_key';
}

// The memory for request bodies, over all connections, reserved as bytes arrive. A body without room is refused and
// never waits, so half-received bodies cannot block each other.

type Holder = Pick<RequestContext, 'bodyHolder' | 'bodyReservation' | 'caller'>;

interface BodyBudget {
  /** Twice as much as before, while there is so much. @returns bytes, at least `needed`; 0 when there is no room */
  grow(holder: Holder, needed: number, limit?: number): number;
  shrink(holder: Holder, bytes: number): void;
}

export function createBodyBudget(maxRequestBodyBytes: number): BodyBudget {
  /** What one token may hold: others go on while one floods. One body of any size that is allowed has room. */
  const callerBytes = Math.max(BODY_BUDGET_BYTES / 4, maxRequestBodyBytes);
  const heldByCaller = new Map<string, number>();
  let held = 0;

  const reserve = (holder: Holder, bytes: number): boolean => {
    const change = bytes - holder.bodyReservation;
    if (change === 0) return true;
    const accessor = holder.bodyHolder ?? holder.caller?.accessor ?? '';
    const byCaller = (heldByCaller.get(accessor) ?? 0) + change;
    if (change > 0 && (held + change > BODY_BUDGET_BYTES || byCaller > callerBytes)) return false;
    held += change;
    holder.bodyReservation = bytes;
    holder.bodyHolder = accessor;
    if (byCaller === 0) heldByCaller.delete(accessor);
    else heldByCaller.set(accessor, byCaller);
    return true;
  };
  return {
    grow(holder, needed, limit = maxRequestBodyBytes) {
      const ample = Math.min(Math.max(needed, 2 * holder.bodyReservation), limit);
      if (reserve(holder, ample)) return ample;
      return reserve(holder, needed) ? needed : 0;
    },
    shrink(holder, bytes) {
      if (bytes < holder.bodyReservation) reserve(holder, bytes);
    },
  };
}

// Collects a body in one buffer, and wipes what it does not hand over: a body may contain passwords.

type BodyEnd = (body: Buffer | Error) => void;

export function readBody(request: HttpRequest, stream: Readable, admission: Admission, onEnd: BodyEnd): void {
  let held: Buffer | undefined;
  let length = 0;
  let isOver = false;

  const finish = (end: Buffer | Error): void => {
    if (isOver) return;
    isOver = true;
    if (end instanceof Error) held?.fill(0);
    onEnd(end);
  };
  const onData = (chunk: Buffer): void => {
    if (isOver) return void chunk.fill(0); // nobody looks at the rest; the answer closes the connection
    const needed = length + chunk.length;
    try {
      if (held === undefined) held = firstOf(request, chunk, admission);
      else {
        if (needed > held.length) held = larger(request, held, needed, admission);
        held.set(chunk, length);
        chunk.fill(0);
      }
      length = needed;
    } catch (error) {
      chunk.fill(0);
      finish(error instanceof Error ? error : new SignerError('internal_error', { cause: error }));
    }
  };
  stream.on('data', onData);
  stream.on('end', () => finish(held?.subarray(0, length) ?? Buffer.alloc(0)));
  stream.on('error', finish);
}

/** Nearly every body comes in one piece, which stays as it is. */
function firstOf(request: HttpRequest, chunk: Buffer, admission: Admission): Buffer {
  admission.bodyGrows(request, chunk.length);
  return chunk;
}

function larger(request: HttpRequest, held: Buffer, needed: number, admission: Admission): Buffer {
  const grown = Buffer.allocUnsafeSlow(admission.bodyGrows(request, needed));
  held.copy(grown);
  held.fill(0);
  return grown;
}

export function acceptAnyBodyAsBytes(app: FastifyInstance, admission: Admission): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request, stream, done) => {
    readBody(request, stream, admission, (body) => {
      const outcome = body instanceof Error ? body : readmitted(request, body, admission);
      if (outcome instanceof Error) done(outcome);
      else done(null, outcome);
    });
  });
}

/** A body that no route gets to see is wiped: it may hold passwords. */
function readmitted(request: HttpRequest, body: Buffer, admission: Admission): Buffer | Error {
  try {
    admission.bodyRead(request, body.length);
    const refusal = admission.readmit(request);
    if (refusal === undefined) return body;
    body.fill(0);
    return new SignerError(refusal);
  } catch (error) {
    body.fill(0);
    return new SignerError('internal_error', { cause: error });
  }
}

// Which origins a browser may let in (CORS), and the refusal of requests that it sends for other pages. It trusts two
// headers that no page can set (Fetch Standard, forbidden request headers).

/** What a web page may read of an answer besides the usual (Fetch Standard, CORS-safelisted response headers). */
const EXPOSED_HEADERS = ['X-Request-Id', 'Retry-After'];

type Foreign = (headers: IncomingHttpHeaders) => boolean;
type OriginRefusal = (headers: IncomingHttpHeaders) => ErrorReason | undefined;

/** Before the routes, and before admission: a preflight carries no credentials. */
export async function allowOrigins(app: FastifyInstance, origins: readonly string[] | null): Promise<void> {
  if (origins === null) return;
  const { default: cors } = await import('@fastify/cors');
  const methods: string[] = []; // each that a route is mounted with, from here on: preflights read it when they come
  app.addHook('onRoute', ({ method }) => {
    for (const name of [method].flat()) if (name !== 'OPTIONS' && !methods.includes(name)) methods.push(name);
  });
  await app.register(cors, {
    origin: origins.includes('*') ? '*' : [...origins],
    methods,
    exposedHeaders: EXPOSED_HEADERS,
    hideOptionsRoute: true,
  });
}

export function originRefusals(origins: readonly string[] | null, hosts: readonly string[] | null): OriginRefusal {
  const [isForeignOrigin, isForeignHost] = [foreignOrigin(origins), foreignHost(hosts)];
  return (headers) =>
    isForeignHost(headers) ? 'foreign_host' : isForeignOrigin(headers) ? 'foreign_origin' : undefined;
}

export function foreignOrigin(allowed: readonly string[] | null): Foreign {
  if (allowed?.includes('*') === true) return () => false;
  return (headers) => {
    const { origin, 'sec-fetch-site': site } = headers;
    if (origin === undefined && site === undefined) return false; // no browser
    if (origin !== undefined && allowed?.includes(origin) === true) return false;
    // Given twice it comes joined: whatever says cross-site counts.
    return String(site).includes('cross-site') || (origin !== undefined && !isOwnHost(origin, headers.host));
  };
}

export function foreignHost(allowed: readonly string[] | null): Foreign {
  if (allowed === null) return () => false;
  const names = new Set(allowed);
  return ({ host = '' }) => !names.has(hostName(host));
}

function hostName(host: string): string {
  return host
    .toLowerCase()
    .replace(/:[0-9]*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
}

/** The same host and port, a default port written or not. The scheme is the page's: a proxy may have ended TLS. */
function isOwnHost(origin: string, host: string | undefined): boolean {
  const page = URL.parse(origin);
  if (page === null || host === undefined || !['http:', 'https:'].includes(page.protocol)) return false;
  return page.origin === origin.toLowerCase() && URL.parse(`${page.protocol}//${host}`)?.host === page.host;
}
