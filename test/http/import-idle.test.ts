// A client that begins to send slashing protection records and does not go on: it is cut off, and what it held ends.

import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { createPolicy } from '../../signer/auth/stateful/policies.ts';
import { issueToken } from '../../signer/auth/stateful/tokens.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { authApp } from '../support/auth-app.ts';
import { openAuthReplica, startAuthServer } from '../support/stateful-auth.ts';

const IDLE_SECONDS = 30;

afterEach(() => void vi.useRealTimers());

it('an import that does not go on for half a minute is cut off, and nothing is imported', async () => {
  const server = await startAuthServer();
  const table = await server.createTable();
  const replica = await openAuthReplica(table);
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<unknown>();
  const importHistories: SlashingBackend['importHistories'] = async (histories) => {
    try {
      const reader = histories[Symbol.asyncIterator]();
      const first = reader.next();
      begin();
      await first;
      throw new Error('a file that stopped in the middle has no first history');
    } catch (error) {
      end(error);
      throw error;
    }
  };
  const app = await authApp(replica, { importHistories });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const authenticated = replica.authenticate(table.rootToken);
  if (authenticated.kind !== 'caller') throw new Error('the root token is valid');
  const root = authenticated.caller.accessor;
  await createPolicy(replica.auth, root, {
    name: 'importer',
    rules: [{ effect: 'allow', scopes: ['slashing_protection'] }],
  });
  const issued = await issueToken(replica.auth, root, { policies: ['importer'], bound_cidrs: [], management: false });
  if (issued.kind !== 'done') throw new Error('a token is issued');

  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  socket.write(
    'POST /api/v1/chamber/slashing-protection HTTP/1.1\r\nHost: x\r\n' +
      `Authorization: Bearer ${issued.answer.token}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  await began;
  await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(IDLE_SECONDS * 1000 - 1);
  expect(socket.closed).toBe(false);
  vi.advanceTimersByTime(1);
  await closed;
  expect(await ended).toMatchObject({ code: 'ECONNRESET' });

  vi.useRealTimers();
  await app.close();
  await server.close();
});
