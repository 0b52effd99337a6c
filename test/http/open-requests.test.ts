// A connection whose request is answered and whose body does not end: it is read on for a while, and then cut.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { createStaticAuthenticator } from '../../signer/auth/static.ts';
import { type HttpRequest, NO_ROUTE, newContext } from '../../signer/http/context.ts';
import { trackOpenRequests } from '../../signer/http/open-requests.ts';
import { keylessApp } from '../support/auth-app.ts';
import { recordingLog } from '../support/recording-log.ts';

const UNREAD_BODY_MS = 30_000;

const nobody = createStaticAuthenticator({ policies: [], anonymousPolicies: [], tokens: [] });

let server: Server;
let client: Socket;
let answered: number;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  answered = 0;
  const open = trackOpenRequests(() => {
    answered += 1;
  });
  server = createServer({ keepAliveTimeout: 60_000 }, (raw, response) => {
    const request: HttpRequest = {
      raw,
      headers: raw.headers,
      id: '1',
      method: '',
      params: {},
      context: newContext(NO_ROUTE, 0, undefined),
    };
    if (open.begin(request, response)) response.end('an answer');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
});
afterEach(async () => {
  vi.useRealTimers();
  client.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function sends(text: string): Promise<void> {
  client.write(text);
  await once(client, 'data'); // the answer
}

it('cuts who sends the body of an answered request byte by byte', async () => {
  await sends('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.write('x');
  vi.advanceTimersByTime(UNREAD_BODY_MS);
  await closed;
  expect(answered).toBe(1);
});

it('leaves a request alone that has no connection: inject() of a test', async () => {
  const app = await keylessApp({ authenticator: nobody, clock: systemClock, log: recordingLog() });
  const answer = await app.inject({ method: 'POST', url: '/nowhere', payload: 'a body that nobody reads' });
  expect(answer.statusCode).toBe(404);
  expect(() => vi.advanceTimersByTime(2 * UNREAD_BODY_MS)).not.toThrow();
  await app.close();
});

it('leaves a connection alone whose body came after the answer', async () => {
  await sends('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n');
  await sends('xGET / HTTP/1.1\r\nHost: x\r\n\r\n');
  vi.advanceTimersByTime(UNREAD_BODY_MS);
  await sends('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(client.destroyed).toBe(false);
});
