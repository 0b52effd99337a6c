// The Auth API of one replica on a port of its own, and requests to it. Whoever imports it has a table, a replica and a
// root token of its own in every test.

import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect } from 'vitest';
import { createdTokenSchema } from '../../signer/api/auth.ts';
import { authApp } from '../support/auth-app.ts';
import { type AuthReplica, type AuthTable, authServerOfFile, openAuthReplica } from '../support/stateful-auth.ts';

export const POLICIES = '/api/v1/auth/policies';
export const TOKENS = '/api/v1/auth/tokens';
export const LOOKUP = `${TOKENS}/lookup-self`;
export const RENEW = `${TOKENS}/renew-self`;

export const RULES = [
  { effect: 'allow', scopes: ['sign', 'public_keys'] },
  { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
];

export const ABSENT = `acc_${'0'.repeat(32)}`;

export const server = authServerOfFile();
export let table: AuthTable;
export let replica: AuthReplica;
export let app: FastifyInstance;
export let root: string;
export let port: number;

beforeEach(async () => {
  table = await server.createTable();
  replica = await openAuthReplica(table);
  await serve();
  root = table.rootToken;
});

afterEach(() => app.close());

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  // The tests say what they expect of it.
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any route
  readonly body: any;
}

export interface CallOptions {
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly peer?: string;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export function call(method: Method, path: string, options: CallOptions = {}): Promise<Answer> {
  const { body, peer = '127.0.0.1' } = options;
  const token = 'token' in options ? options.token : root;
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  const length = payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) };
  const headers = { ...(token === undefined ? {} : bearer(token)), ...length, ...options.headers };
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = http.request({ host: '127.0.0.1', port, path, method, headers, localAddress: peer, agent: false });
  request.once('error', reject).once('response', (response) => {
    text(response).then((answer) => {
      request.destroy(); // also one that announced more than it sends
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: answer === '' ? undefined : JSON.parse(answer),
      });
    }, reject);
  });
  request.end(payload);
  return promise;
}

export async function serve(options: { readonly stateless?: boolean } = {}): Promise<void> {
  app = await authApp(replica, options);
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
}

export function keys(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `0x${index.toString(16).padStart(96, '0')}`);
}

export function bearer(token: string) {
  return { authorization: `Bearer ${token}` };
}

export async function createPolicy(name = 'signer', rules: unknown = RULES): Promise<void> {
  const { status } = await call('POST', POLICIES, { body: { name, rules } });
  expect(status).toBe(201);
}

export async function createToken(request: object = { policies: ['signer'] }) {
  const { status, body } = await call('POST', TOKENS, { body: request });
  expect(status).toBe(201);
  return createdTokenSchema.parse(body);
}
