// What a browser is told of the API for a page of an allowed origin: the methods that are mounted, and the headers it
// may read.

import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { authApp } from '../support/auth-app.ts';
import { type AuthReplica, type AuthServer, openAuthReplica, startAuthServer } from '../support/stateful-auth.ts';

const ORIGIN = 'https://ops.example';
const POLICIES = '/api/v1/auth/policies';

let server: AuthServer;
let replica: AuthReplica;
let root: string;
let app: FastifyInstance;

beforeAll(async () => {
  server = await startAuthServer();
  const table = await server.createTable();
  root = table.rootToken;
  replica = await openAuthReplica(table);
  app = await authApp(replica, { http: { corsAllowedOrigins: [ORIGIN] } });
});
afterAll(async () => {
  await app.close();
  await server.close();
});

function preflight(of: FastifyInstance, method: string) {
  const headers = { origin: ORIGIN, 'access-control-request-method': method };
  return of.inject({ method: 'OPTIONS', url: `${POLICIES}/ops`, headers });
}

it('a preflight names every method that a route is mounted with', async () => {
  const answer = await preflight(app, 'DELETE');
  expect(answer.statusCode).toBe(204);
  const methods = String(answer.headers['access-control-allow-methods']).split(', ').sort();
  expect(methods).toEqual(['DELETE', 'GET', 'HEAD', 'POST', 'PUT']);
});

it('and none that is not', async () => {
  const without = await authApp(replica, { stateless: true, http: { corsAllowedOrigins: [ORIGIN] } });
  const answer = await preflight(without, 'DELETE');
  expect(String(answer.headers['access-control-allow-methods']).split(', ').sort()).toEqual(['GET', 'HEAD', 'POST']);
  await without.close();
});

it('a page may read the request id of an answer, also of a refusal', async () => {
  for (const authorization of [`Bearer ${root}`, 'Bearer unknown']) {
    const answer = await app.inject({ url: POLICIES, headers: { origin: ORIGIN, authorization } });
    expect(answer.headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(String(answer.headers['access-control-expose-headers']).split(', ')).toContain('X-Request-Id');
    expect(answer.headers['x-request-id']).toBeDefined();
  }
});
