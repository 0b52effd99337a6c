// What the server knows of a connection and of its requests, for their audit lines (specification/operating.md#logs).

import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
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

// What is known of a connection besides its bytes. Behind a transport the socket has no address: the PROXY header's is
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
