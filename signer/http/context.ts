// What the server knows of a connection and of its requests, for their audit lines (specification/operating.md#logs).

import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import type { Places } from '../../common/formats/places.ts';
import type { Span } from '../../common/observe/tracing.ts';
import type { ErrorReason } from '../api/errors.ts';
import type { ClientFault } from '../api/forks.ts';
import type { Operation, Scope } from '../api/operations.ts';
import type { Caller } from '../auth/authenticator.ts';
import type { AccessDecision } from '../auth/evaluate.ts';
import type { Payment, Position } from '../operations/row.ts';
import type { PublicKeyHex } from '../slashing/types.ts';
import type { ClientCertificate } from '../tls/client-certificate.ts';

export type RouteAccess =
  | { readonly kind: 'open' }
  /** Management tokens only: policies and tokens are no scope (specification/authorization.md#scopes). */
  | { readonly kind: 'management' }
  | { readonly kind: 'any_token' }
  | {
      readonly kind: 'scope';
      readonly scope: Scope;
      readonly orScope?: Scope;
      readonly namesKey: boolean;
      /** Answers 503 while the signer may not sign; other routes answer 401 while the credentials are sealed. */
      readonly needsSigning: boolean;
      /** A management token is admitted too, whatever its policies say (specification/authorization.md#tokens). */
      readonly orManagement?: true;
      /** Served also while the state is stale: to look what is wrong, and to seal. */
      readonly whileStale?: true;
      /** Answers the whole list of keys or nothing (refusals.ts): it waits while keys load. */
      readonly listsKeys?: true;
    };

export interface RequestContext {
  readonly startedAt: number;
  readonly peerAddress: string | undefined;
  readonly route: string | undefined;
  readonly access: RouteAccess | undefined;
  readonly streamsBody: boolean;
  caller: Caller | undefined;
  publicKey: PublicKeyHex | undefined;
  operation: Operation | undefined;
  position: Position | undefined;
  signingRoot: Uint8Array | undefined;
  healed: ClientFault | undefined;
  payment: Payment | undefined;
  batch: BatchCounts | undefined;
  subject: string | undefined;
  reason: ErrorReason | undefined;
  deniedBy: string | undefined;
  span: Span | undefined;
  bodyReservation: number;
  bodyHolder: string | undefined;
  released: boolean;
  /** Refused by closing the connection. */
  unanswered: boolean;
  onEnd: (() => void) | undefined;
  bodyDeadline: NodeJS.Timeout | undefined;
}

interface BatchCounts {
  readonly keys: number;
  readonly outcomes: Map<'signed' | ErrorReason, number>;
}

export interface Route {
  readonly url: string | undefined;
  readonly access: RouteAccess | undefined;
  readonly streamsBody: boolean;
}

export const NO_ROUTE: Route = Object.freeze({ url: undefined, access: undefined, streamsBody: false });

export function newContext(route: Route, startedAt: number, peerAddress: string | undefined): RequestContext {
  return {
    startedAt,
    peerAddress,
    route: route.url,
    access: route.access,
    streamsBody: route.streamsBody,
    caller: undefined,
    publicKey: undefined,
    operation: undefined,
    position: undefined,
    signingRoot: undefined,
    healed: undefined,
    payment: undefined,
    batch: undefined,
    subject: undefined,
    reason: undefined,
    deniedBy: undefined,
    span: undefined,
    bodyReservation: 0,
    bodyHolder: undefined,
    released: false,
    unanswered: false,
    onEnd: undefined,
    bodyDeadline: undefined,
  };
}

export type HttpRequest = Pick<FastifyRequest, 'raw' | 'headers' | 'id' | 'method' | 'params' | 'context'>;

declare module 'fastify' {
  interface FastifyRequest {
    context: RequestContext;
  }
  interface FastifyContextConfig {
    access?: RouteAccess;
    streamsBody?: true;
  }
}

const REQUEST_ID = /^[\x20-\x7e]{1,128}$/;

/** The client's X-Request-Id when it is printable ASCII of at most 128 characters, else a new UUIDv7. */
export function requestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUIDv7();
}

export function callerOf({ context }: HttpRequest): Caller {
  assert(context.caller !== undefined, 'admission lets nobody in without a caller');
  return context.caller;
}

export function isAllowed(request: HttpRequest, decision: AccessDecision): boolean {
  if (!decision.allowed && decision.why === 'denied_by_rule') request.context.deniedBy = decision.policy;
  return decision.allowed;
}

// Every request to its end. Only this part returns what a request holds, so a client that goes away cannot keep it.

/** Requests of one connection that wait for their answer. No client of ours pipelines; a flood that does is cut. */
export const MAX_UNANSWERED_REQUESTS = 16;

/** For the rest of a body that nobody reads: as long as an admitted client has for a whole one. */
const UNREAD_BODY_MS = 30_000;

interface OpenRequests {
  /** False when the connection has too many already: it is closed, and the request goes no further. */
  begin(request: HttpRequest, response: ServerResponse): boolean;
}

const byConnection = new WeakMap<Socket, Map<HttpRequest, ServerResponse>>();

export function hasOpenRequests(socket: Socket): boolean {
  return (byConnection.get(socket)?.size ?? 0) > 0;
}

/** @param onEnd called exactly once for each request that began */
export function trackOpenRequests(onEnd: (request: HttpRequest, response: ServerResponse) => void): OpenRequests {
  const openOf = (socket: Socket): Map<HttpRequest, ServerResponse> => {
    const known = byConnection.get(socket);
    if (known !== undefined) return known;
    const open = new Map<HttpRequest, ServerResponse>();
    byConnection.set(socket, open);
    // An answer that waits behind another one on this connection never hears that the connection is gone.
    socket.once('close', () => {
      for (const [request, response] of open) end(open, request, response);
    });
    return open;
  };
  const end = (open: Map<HttpRequest, ServerResponse>, request: HttpRequest, response: ServerResponse): void => {
    if (open.delete(request)) onEnd(request, response);
  };

  return {
    begin(request, response) {
      const { socket } = request.raw;
      const open = openOf(socket);
      if (open.size >= MAX_UNANSWERED_REQUESTS) {
        socket.destroy();
        return false;
      }
      open.set(request, response);
      // After the last byte is handed over, and also when the connection breaks before.
      response.once('close', () => {
        end(open, request, response);
        boundUnreadBody(request);
      });
      return true;
    },
  };
}

/** Node reads on until the body is over: who sends it byte by byte would have the connection for ever. */
function boundUnreadBody({ raw }: HttpRequest): void {
  if (raw.complete || raw.destroyed) return;
  const timer = setTimeout(() => {
    if (!raw.complete) raw.destroy(); // and with it its connection, where it has one: under inject() it has none
  }, UNREAD_BODY_MS);
  timer.unref();
  raw.once('close', () => clearTimeout(timer));
}

// Node's `headers` drops all but the first Authorization and joins others; `headersDistinct` makes a table of all.

/** @param name in lower case; undefined when the request has no such header */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] | undefined {
  let values: string[] | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const given = rawHeaders[at] ?? '';
    if (given.length !== name.length || given.toLowerCase() !== name) continue;
    values ??= [];
    values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

// What is known of a connection beside its bytes. Behind a transport the socket has no address: the PROXY header's is
// remembered here (specification/enclave.md#shape).

interface AttestedIdentity {
  readonly spki: Buffer;
}

export interface ConnectionFacts {
  /** Undefined when the peer has none that counts: then no token that is bound to addresses is good. */
  readonly peerAddress: string | undefined;
  readonly identity?: AttestedIdentity;
  readonly clientCertificate?: ClientCertificate;
}

const factsOf = new WeakMap<Socket, ConnectionFacts>();

export function rememberConnection(socket: Socket, facts: ConnectionFacts): void {
  factsOf.set(socket, facts);
}

/** Undefined when there is none, or the socket is gone. */
export function peerAddressOf(socket: Socket): string | undefined {
  const facts = factsOf.get(socket);
  return facts === undefined ? socket.remoteAddress : facts.peerAddress;
}

export function attestedIdentityOf(socket: Socket): AttestedIdentity | undefined {
  return factsOf.get(socket)?.identity;
}

export function clientCertificateOf(socket: Socket): ClientCertificate | undefined {
  return factsOf.get(socket)?.clientCertificate;
}

/** The stream under TLS. Where Node did not keep it, no RA-TLS connection would be served, and no chain trusted. */
export function streamOf(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { readonly _parent?: Socket })._parent;
}

// When a listener has no place left, the oldest connection without an admitted request goes (common/formats/places.ts).

export interface ConnectionLimits {
  readonly handshakeTimeoutMs: number;
  readonly headersTimeoutMs: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = { handshakeTimeoutMs: 10_000, headersTimeoutMs: 15_000 };
const CHECKS = 4;

export function headerTimes(
  headersTimeout: number = CONNECTION_LIMITS.headersTimeoutMs,
): Required<Pick<ServerOptions, 'headersTimeout' | 'connectionsCheckingInterval'>> {
  return { headersTimeout, connectionsCheckingInterval: Math.ceil(headersTimeout / CHECKS) };
}

export type LostPlace = 'displaced' | 'limit';

const placesOf = new WeakMap<Socket, Places<Socket>>();

export function takePlace(
  places: Places<Socket>,
  socket: Socket,
  address: string | undefined,
  onLost: (why: LostPlace) => void,
): boolean {
  const displaced = places.enter(socket, address);
  if (displaced !== undefined) {
    onLost(displaced === socket ? 'limit' : 'displaced');
    displaced.destroy();
  }
  if (displaced === socket) return false;
  placesOf.set(socket, places);
  socket.once('close', () => places.leave(socket));
  return true;
}

/** The address of its client has become known. @param socket that took the place */
export function namePlace(socket: Socket, address: string | undefined): void {
  placesOf.get(socket)?.name(socket, address);
}

/** From now on it is not displaced. @param socket the one that requests are read from */
export function settlePlace(socket: Socket): void {
  const stream = streamOf(socket as TLSSocket) ?? socket;
  const places = placesOf.get(stream);
  if (places === undefined) return;
  places.settle(stream);
  placesOf.delete(stream);
}
