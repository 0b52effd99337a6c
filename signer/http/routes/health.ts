// Liveness and readiness, from facts gathered in the background: it never waits for a backend.

import type { FastifyInstance, FastifyReply } from 'fastify';
import type { HealthCheck } from '../../api/health.ts';

export interface Readiness {
  checks(): readonly HealthCheck[];
}

export interface HealthAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const UPCHECK_ANSWER: HealthAnswer = {
  status: 200,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'OK',
};

export function mountHealth(app: FastifyInstance, readiness: Readiness): void {
  const config = { access: { kind: 'open' } } as const;
  const send = (reply: FastifyReply, { status, headers, body }: HealthAnswer) =>
    reply.code(status).headers(headers).send(body);
  const options = { config, exposeHeadRoute: true } as const; // load balancers ask with HEAD
  app.get('/upcheck', { ...options }, async (_request, reply) => send(reply, UPCHECK_ANSWER));
  app.get('/healthcheck', { ...options }, async (_request, reply) => send(reply, healthAnswer(readiness)));
}

export function healthAnswer(readiness: Readiness): HealthAnswer {
  const checks = readiness.checks();
  const status = checks.every((check) => check.status === 'UP' || check.status === 'DEGRADED') ? 'UP' : 'DOWN';
  const type = { 'content-type': 'application/json; charset=utf-8' };
  return {
    status: status === 'UP' ? 200 : 503,
    headers: status === 'UP' ? type : { ...type, 'retry-after': '1' },
    body: JSON.stringify({ status, checks, outcome: status }),
  };
}
