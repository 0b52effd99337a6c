// A network that forgets connections and says nothing (a load balancer, a firewall): the first silence costs one
// request, and no other connection that was open then is used again.

import { connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { block, checkOne, verdictName } from '../../support/slashing.ts';
import { joinEnds } from '../../support/tcp-faults.ts';
import { database, open, opened, server } from './signers-set-up.ts';

const KEYS = 6;

/** Leads to the server; what is open when it forgets carries nothing any more. */
async function forgetfulNetwork() {
  const sockets = new Set<Socket>();
  const alive = new Set<Socket>();
  let connections = 0;
  const listener = createServer((client) => {
    connections += 1;
    const upstream = connect(server.port, '127.0.0.1');
    joinEnds(client, upstream, sockets);
    alive.add(client);
    client.on('data', (bytes) => alive.has(client) && upstream.write(bytes));
    upstream.on('data', (bytes) => alive.has(client) && client.write(bytes));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  opened.push({
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  });
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('it listens on a port');
  return {
    port: address.port,
    forget: () => alive.clear(),
    get connections() {
      return connections;
    },
  };
}

const { signal } = new AbortController();
it.each<[string, (store: SlashingBackend) => Promise<unknown>]>([
  ['a signature', (store) => checkOne(store, block(1, 2, 'a'))],
  ['a health check', (store) => store.checkHealth(signal)],
  ['a look at the record', (store) => store.tenures()],
  ['a look at a block', (store) => store.signedBlockRoot(block(1, 1, 'a').publicKey, 1)],
  ['a change of the record', async (store) => store.incarnate((await store.identity()).incarnation, 'next')],
])('a network that has forgotten the connections costs one request: %s', async (_what, ask) => {
  const network = await forgetfulNetwork();
  const url = server.url(database).replace(`:${server.port}/`, `:${network.port}/`);
  const backend = await open({ poolSize: KEYS, timeouts: { answerMs: 3_000 } }, url);
  const checks = (slot: number) =>
    Promise.all(Array.from({ length: KEYS }, (_, key) => checkOne(backend, block(key + 1, slot, 'a'))));
  expect((await checks(1)).map(verdictName)).toEqual(Array.from({ length: KEYS }, () => 'safe'));
  expect(network.connections).toBeGreaterThan(KEYS / 2);
  network.forget();
  await expect(ask(backend)).rejects.toMatchObject({ reason: 'slashing_unavailable' });
  for (let key = 1; key <= KEYS; key++) expect(verdictName(await checkOne(backend, block(key, 3, 'a')))).toBe('safe');
});
