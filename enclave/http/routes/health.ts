// Liveness and readiness. /upcheck answers whatever the load or the state; /healthcheck says whether the signer can
// safely sign, from facts gathered in the background: it never waits for a backend (Vero polls it every second).

import type { FastifyInstance } from 'fastify';
import { healthRouteSchema, upcheckRouteSchema } from '../openapi.ts';

export interface HealthCheck {
  readonly id: 'chamber' | 'anti_slashing' | 'state_watcher' | 'keys';
  readonly status: 'UP' | 'DOWN';
  /** What is wrong, without secrets or configured values. */
  readonly detail?: string;
}

export interface Readiness {
  checks(): readonly HealthCheck[];
}

export function mountHealth(app: FastifyInstance, readiness: Readiness): void {
  const config = { access: { kind: 'open' } } as const;
  app.get('/upcheck', { config, schema: upcheckRouteSchema }, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send('OK'),
  );
  app.get('/healthcheck', { config, schema: healthRouteSchema }, async (_request, reply) => {
    const checks = readiness.checks();
    const status = checks.every((check) => check.status === 'UP') ? 'UP' : 'DOWN';
    return reply
      .code(status === 'UP' ? 200 : 503)
      .headers(status === 'UP' ? {} : { 'retry-after': '1' })
      .type('application/json; charset=utf-8')
      .send(JSON.stringify({ status, checks, outcome: status }));
  });
}
