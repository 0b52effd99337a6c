// A promise of a route that rejects after its request. Routes that sign are left out: it may be a fault of slashing
// protection, and such a signer must not sign on.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

type Take = (error: unknown) => void;

const requestUnderWay = new AsyncLocalStorage<Take>();

export function keepEscapes(
  app: FastifyInstance,
  onEscape: (request: FastifyRequest, reply: FastifyReply, error: unknown) => void,
): void {
  app.addHook('onRoute', (route) => {
    const access = route.config?.access;
    if (access?.kind === 'scope' && access.scope === 'sign') return;
    const { handler } = route;
    route.handler = function (request, reply) {
      return requestUnderWay.run(
        (error) => onEscape(request, reply, error),
        () => handler.call(this, request, reply),
      );
    };
  });
}

/** For `unhandledRejection`. @returns whether it is a request's, which has it now */
export function takenByRequest(error: unknown): boolean {
  const take = requestUnderWay.getStore();
  take?.(error);
  return take !== undefined;
}
