// What the server knows of one request while it lives: the caller, what it asks for, when it began, and how it ended.
// Each request of an authenticated route gets exactly one audit line from it (specification/operating.md#logs).

import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Span } from '../../observe/tracing.ts';
import type { ErrorReason } from '../api/errors.ts';
import type { Operation, Scope } from '../api/operations.ts';
import type { Payment } from '../api/payments.ts';
import type { Position } from '../api/positions.ts';
import type { Caller } from '../auth/authenticator.ts';
import type { PublicKeyHex } from '../slashing/types.ts';

/**
 * What a caller needs to be admitted to a route. Every route states one; a route without one is refused at mounting.
 */
export type RouteAccess =
  | { readonly kind: 'open' }
  /** Management tokens only: policies and tokens are no scope (specification/authorization.md#scopes). */
  | { readonly kind: 'management' }
  /** Every valid token, for what concerns itself alone. */
  | { readonly kind: 'any_token' }
  | {
      readonly kind: 'scope';
      readonly scope: Scope;
      /** Admits as well as `scope` does, which is what the audit line names. */
      readonly orScope?: Scope;
      /** The path names one validator key, which the policy has to allow. */
      readonly namesKey: boolean;
      /** Answers 503 while the signer may not sign; other routes answer 401 while the credentials are sealed. */
      readonly needsSigning: boolean;
      /** A management token is admitted too, whatever its policies say (specification/authorization.md#tokens). */
      readonly orManagement?: true;
      /**
       * Served also while the state is stale: to look what is wrong, and to seal. Every other route answers 503 then.
       */
      readonly whileStale?: true;
    };

export interface RequestContext {
  readonly startedAt: number;
  /** The connection's peer as it was when the request came: a socket that is gone has no address any more. */
  readonly peerAddress: string | undefined;
  /** The mounted pattern; undefined for a path that is unknown. */
  readonly route: string | undefined;
  /** The route's; undefined for a path that is unknown. */
  readonly access: RouteAccess | undefined;
  /** The route reads its body as a stream, with limits of its own. */
  readonly streamsBody: boolean;
  caller: Caller | undefined;
  publicKey: PublicKeyHex | undefined;
  operation: Operation | undefined;
  /** Where on the chain the message stands. For the audit line only. */
  position: Position | undefined;
  /** What the signature is to be over, once it is known to be right. For the audit line only. */
  signingRoot: Uint8Array | undefined;
  /** Where the message says that a proposer is paid; undefined for messages that say nothing of it. */
  payment: Payment | undefined;
  /** A batch: how many keys it names, and what became of those that are decided. */
  batch: BatchCounts | undefined;
  /** The policy (by name) or token (by accessor) that the request is about. */
  subject: string | undefined;
  /** Why the request was refused; undefined when it was not. */
  reason: ErrorReason | undefined;
  /** The policy whose deny rule refused the request. For the audit line only. */
  deniedBy: string | undefined;
  /** The trace of this request, when tracing is on. */
  span: Span | undefined;
  /** Bytes this request holds of the budget for bodies (bodies/budget.ts). */
  bodyReservation: number;
  /** The accessor that these bytes are counted for. */
  bodyHolder: string | undefined;
  /** The request has ended and gave it back: it takes no more. */
  released: boolean;
  /** What is to be given up when the request ends before it is answered. */
  onEnd: (() => void) | undefined;
  /** Cuts the connection when the body does not come in time. */
  bodyDeadline: NodeJS.Timeout | undefined;
}

export interface BatchCounts {
  readonly keys: number;
  readonly outcomes: Map<'signed' | ErrorReason, number>;
}

/** What is known of a route before any request. */
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
    payment: undefined,
    batch: undefined,
    subject: undefined,
    reason: undefined,
    deniedBy: undefined,
    span: undefined,
    bodyReservation: 0,
    bodyHolder: undefined,
    released: false,
    onEnd: undefined,
    bodyDeadline: undefined,
  };
}

/** What admission, routes and records look at of a request. */
export type HttpRequest = Pick<FastifyRequest, 'raw' | 'headers' | 'id' | 'method' | 'params' | 'context'>;

declare module 'fastify' {
  interface FastifyRequest {
    context: RequestContext;
  }
  interface FastifyContextConfig {
    access?: RouteAccess;
    /** The route reads its body as a stream, with limits of its own. */
    streamsBody?: true;
  }
}

const REQUEST_ID = /^[\x20-\x7e]{1,128}$/;

/** The client's X-Request-Id when it is printable ASCII of at most 128 characters, else a new UUIDv7. */
export function requestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUIDv7();
}
