// An attested TLS 1.3 server over TCP that can be made to lie: its certificate, its key and what its nonce route
// answers are a test's choice, and every byte that it decrypts is kept, so that a test can say what arrived before a
// client knew whom it talks to.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import {
  connectionNonce,
  DOCUMENT_MEDIA_TYPE,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  keyBinding,
} from '../../common/attestation/contract.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createIdentity, type RatlsIdentity } from '../../enclave/ratls/identity.ts';
import { createNsmEmulator, type NsmEmulatorOptions } from '../../rehearsal/nsm/emulator.ts';
import type { Nsm } from '../../signer/tee/nsm.ts';
import { ownAddress } from '../support/own-address.ts';
import { type Answerer, answering, type Received } from './fixture-signer.ts';

export type ServerIdentity = Pick<RatlsIdentity, 'key' | 'spki'> & { readonly cert: string };

export type NonceRoute = (clientNonce: Buffer, socket: TLSSocket) => Promise<Buffer | number>;

export interface RatlsServer {
  readonly url: string;
  readonly received: readonly Received[];
  readonly bytes: () => string;
  readonly connections: readonly TLSSocket[];
  /** For new connections, and new documents. */
  rotate(next: Pick<Enclave, 'identity' | 'nonceRoute'>): void;
  close(): Promise<void>;
}

export async function startRatlsServer(
  identity: ServerIdentity,
  answer: Answerer,
  nonceRoute: NonceRoute,
  port = 0,
): Promise<RatlsServer> {
  const received: Received[] = [];
  const connections: TLSSocket[] = [];
  const chunks: Buffer[] = [];
  let route = nonceRoute;
  const others = answering(answer, received);
  const http = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://enclave');
    if (url.pathname !== '/api/v1/attestation') return others(request, response);
    const nonce = Buffer.from(url.searchParams.get('nonce') ?? '', 'hex');
    void attest(route, nonce, request, response);
  });
  const server = createTlsServer({ cert: identity.cert, key: identity.key, minVersion: 'TLSv1.3' }, (socket) => {
    connections.push(socket);
    socket.on('error', () => undefined);
    http.emit('connection', socket);
    socket.on('data', (chunk: Buffer) => void chunks.push(chunk)); // after it: it would read past earlier listeners
  });
  server.on('tlsClientError', () => undefined); // clients that refuse the certificate
  server.listen(port, ownAddress(5));
  await once(server, 'listening');
  return {
    url: `https://${ownAddress(5)}:${(server.address() as AddressInfo).port}`,
    received,
    connections,
    bytes: () => Buffer.concat(chunks).toString('latin1'),
    rotate({ identity: { cert, key }, nonceRoute: next }) {
      route = next;
      server.setSecureContext({ cert, key, minVersion: 'TLSv1.3' });
    },
    async close() {
      for (const socket of connections) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function attest(
  route: NonceRoute,
  nonce: Buffer,
  { socket }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await route(nonce, socket as TLSSocket);
  if (typeof answer === 'number') response.writeHead(answer).end('{}');
  else response.writeHead(200, { 'content-type': DOCUMENT_MEDIA_TYPE }).end(answer);
}

export interface Enclave {
  readonly nsm: Nsm;
  readonly rootFingerprint: string;
  readonly identity: RatlsIdentity;
  readonly nonceRoute: NonceRoute;
}

export async function makeEnclave(options: NsmEmulatorOptions = {}): Promise<Enclave> {
  const emulator = await createNsmEmulator(options);
  const nsm = createNsm(emulator.exchange);
  const clock = options.clock ?? { now: Date.now };
  const identity = await createIdentity({ nsm, clock, validitySeconds: 3600 });
  return { nsm, rootFingerprint: emulator.rootFingerprint, identity, nonceRoute: honestRoute(nsm, identity) };
}

export function honestRoute(nsm: Nsm, { spki }: Pick<RatlsIdentity, 'spki'>): NonceRoute {
  return (clientNonce, socket) => {
    const exported = socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0));
    return nsm.attest({ userData: keyBinding(spki), nonce: connectionNonce(clientNonce, exported) });
  };
}
