// A tunnel to an enclave of the test, and its client. What a test starts is ended after it.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach } from 'vitest';
import type { TunnelOptions } from '../../operator/tunnel/tunnel.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { ownAddress } from '../support/own-address.ts';
import { type Answerer, answerJson } from './fixture-signer.ts';
import { type Enclave, makeEnclave, type RatlsServer, startRatlsServer } from './ratls-server.ts';
import { type RunningTunnel, startTunnel as startTunnelTo } from './running-tunnel.ts';

export const TOKEN = 'sr_client_tunnel_test';

export const pki = await createNsmPki();
export const enclave = await makeEnclave({ pki });
export let ending: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ending.toReversed()) await end();
  ending = [];
});

export const echo: Answerer = (received, response, { headers }) => answerJson(response, 200, { ...received, headers });

export async function startServer(answer: Answerer = echo, of: Enclave = enclave, port = 0): Promise<RatlsServer> {
  const server = await startRatlsServer(of.identity, answer, of.nonceRoute, port);
  let open = true;
  ending.push(async () => open && server.close());
  return {
    ...server,
    close: () => {
      open = false;
      return server.close();
    },
  };
}

export async function startTunnel(
  { url }: { readonly url: string },
  options: Partial<TunnelOptions> = {},
  now = Date.now,
): Promise<RunningTunnel> {
  const tunnel = await startTunnelTo({ url, token: TOKEN, rootFingerprint: pki.rootFingerprint, now }, options);
  ending.push(async () => {
    tunnel.stop();
    await tunnel.ended;
  });
  return tunnel;
}

export function dropAll(server: RatlsServer): void {
  for (const socket of server.connections) socket.destroy();
}

/** A port at the address of `startServer`, where nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer((socket: Socket) => socket.destroy()).listen(0, ownAddress(5));
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
