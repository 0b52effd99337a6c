// A rejection that a route leaves behind: it is that request's 500 where there is no answer yet, and the process learns
// that it has an owner. A route that signs has no such net. The rejections here are real ones, which Node reports.

import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keepEscapes, takenByRequest } from '../../signer/http/escapes.ts';

let app: FastifyInstance;
const escaped: string[] = [];
const reported: { readonly error: unknown; readonly taken: boolean }[] = [];
let told = Promise.withResolvers<void>();
/** Those of the test runner, which would take a rejection for a fault of the test. */
let runners: NodeJS.UnhandledRejectionListener[] = [];

function onRejection(error: unknown): void {
  reported.push({ error, taken: takenByRequest(error) });
  told.resolve();
}

beforeEach(() => {
  runners = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', onRejection);
  escaped.length = 0;
  reported.length = 0;
  told = Promise.withResolvers<void>();
  app = fastify();
  keepEscapes(app, (request, reply, error) => {
    escaped.push(`${request.url} ${String(error)}`);
    if (!reply.sent) void reply.code(500).send('fault');
  });
});
afterEach(async () => {
  await app.close();
  process.removeAllListeners('unhandledRejection');
  for (const listener of runners) process.on('unhandledRejection', listener);
});

const open = { access: { kind: 'open' } } as const;
const signs = {
  access: { kind: 'scope', scope: 'sign', namesKey: false, needsSigning: true },
} as const;

it('before the answer is the 500 of its request', async () => {
  app.get('/one', { config: open }, (_request, _reply) => {
    setImmediate(() => void Promise.reject(new Error('nobody waits'))); // and the route never answers
  });
  const answer = await app.inject('/one');
  expect(answer.statusCode).toBe(500);
  expect(escaped).toEqual(['/one Error: nobody waits']);
  expect(reported).toMatchObject([{ taken: true }]);
});

it('after the answer is noted with its request, and changes no answer', async () => {
  const late = Promise.withResolvers<void>();
  app.get('/two', { config: open }, async () => {
    void late.promise.then(() => {
      throw new Error('too late');
    });
    return 'answered';
  });
  const answer = await app.inject('/two');
  expect(answer.body).toBe('answered');
  late.resolve();
  await told.promise;
  expect(escaped).toEqual(['/two Error: too late']);
  expect(reported).toMatchObject([{ taken: true }]);
});

it('of a route that signs belongs to no request: the process ends for it', async () => {
  app.post('/sign', { config: signs }, async () => {
    void Promise.reject(new Error('of the signing path'));
    return 'answered';
  });
  expect((await app.inject({ method: 'POST', url: '/sign' })).body).toBe('answered');
  await told.promise;
  expect(escaped).toEqual([]);
  expect(reported).toMatchObject([{ taken: false }]);
});

it('outside any request belongs to none', async () => {
  void Promise.reject(new Error('of nobody'));
  await told.promise;
  expect(reported).toMatchObject([{ taken: false }]);
});
