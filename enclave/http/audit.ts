// One audit line per request of an authenticated route, and what the metrics want to know of every request. Names, not
// values: no token, no body, no signature is ever in it.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorReason } from '../api/errors.ts';
import { type ClientAddressOptions, clientAddress } from '../auth/client-address.ts';
import type { Clock } from '../observe/clock.ts';
import type { Log } from '../observe/log.ts';

export interface HttpObserver {
  /** A request ended. `route` is the mounted pattern, or `unknown`. */
  requestEnded(route: string, status: number, seconds: number): void;
  /** A signing request ended: its operation (undefined when the body was not understood) and `signed` or the reason. */
  signingEnded(operation: string | undefined, outcome: 'signed' | ErrorReason, seconds: number): void;
  authRejected(reason: ErrorReason): void;
}

export interface Audit {
  record(request: FastifyRequest, reply: FastifyReply): void;
}

export function createAudit(
  addresses: ClientAddressOptions,
  { clock, log, observer }: { clock: Clock; log: Log; observer: HttpObserver },
): Audit {
  return {
    record(request, reply) {
      const { context } = request;
      const seconds = (clock.monotonic() - context.startedAt) / 1000;
      const access = request.routeOptions.config.access;
      observer.requestEnded(
        access === undefined ? 'unknown' : (request.routeOptions.url ?? 'unknown'),
        reply.statusCode,
        seconds,
      );
      if (access === undefined || access.kind === 'open') return;
      const outcome = reply.statusCode < 400 ? 'ok' : 'refused';
      const scope = access.kind === 'scope' ? access.scope : undefined;
      if (scope === 'sign') observer.signingEnded(context.operation, context.reason ?? 'signed', seconds);
      log.info(
        {
          audit: true,
          client_ip: clientAddress(
            addresses,
            request.raw.socket.remoteAddress,
            request.raw.headersDistinct['x-forwarded-for'],
          ),
          accessor: context.caller?.accessor,
          scope,
          // Administration has no scopes: what was done is the method and the route, to whom is the subject.
          ...(scope === undefined ? { method: request.method, route: request.routeOptions.url } : {}),
          subject: context.subject,
          key: context.publicKey,
          operation: context.operation,
          outcome,
          status: reply.statusCode,
          reason: context.reason,
          denied_by: context.deniedBy,
          request_id: request.id,
          duration_ms: Math.round(seconds * 1e6) / 1e3,
        },
        'request',
      );
    },
  };
}
