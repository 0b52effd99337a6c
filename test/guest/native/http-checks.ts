// HTTP over TLS 1.3 over vsock, with Node's own server and client: what the RA-TLS listener and the AWS clients stand
// on.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { callbackify } from 'node:util';
import type { Transport } from '../../../signer/native/transport.ts';
import type { Checks } from '../checks.ts';
import { TLS_FILES } from './settings.ts';

const PORT = 6200;
const CLIENTS = 4;
const REQUESTS = 10;
const BODY_BYTES = 30_000;

export async function checkHttp(transport: Transport, check: Checks['check'], prefix: string): Promise<void> {
  await check(
    `${prefix}HTTP over TLS 1.3 over vsock: ${CLIENTS} clients with ${REQUESTS} requests each, on a kept connection each`,
    async () => {
      const certificate = readFileSync(TLS_FILES.certificate);
      let connections = 0;
      const server = createServer(
        { cert: certificate, key: readFileSync(TLS_FILES.key), minVersion: 'TLSv1.3' },
        (incoming, answer) => {
          incoming.pipe(answer);
        },
      );
      const listener = await transport.listen(PORT, (socket) => {
        connections += 1;
        server.emit('connection', socket);
      });
      const agent = new VsockAgent(transport, certificate);
      const body = randomBytes(BODY_BYTES);
      await Promise.all(Array.from({ length: CLIENTS }, () => postOften(agent, body)));
      assert.equal(connections, CLIENTS);
      agent.destroy();
      await listener.close();
      server.closeAllConnections();
    },
  );
}

class VsockAgent extends Agent {
  readonly #transport: Transport;
  readonly #ca: Buffer;

  constructor(transport: Transport, ca: Buffer) {
    super({ keepAlive: true });
    this.#transport = transport;
    this.#ca = ca;
  }

  override createConnection(_: unknown, done?: (error: Error | null, stream: Duplex) => void): Duplex | null {
    const connecting = async (): Promise<Duplex> => {
      const socket = await this.#transport.connect(PORT);
      return connectTls({ socket, ca: this.#ca, servername: 'localhost', minVersion: 'TLSv1.3' });
    };
    callbackify(connecting)(done ?? (() => undefined));
    return null;
  }
}

async function postOften(agent: Agent, body: Buffer): Promise<void> {
  for (let count = 0; count < REQUESTS; count++) assert((await post(agent, body)).equals(body));
}

function post(agent: Agent, body: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ agent, host: 'localhost', method: 'POST', path: '/' }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => void chunks.push(chunk));
      answer.on('end', () => resolve(Buffer.concat(chunks)));
    });
    outgoing.on('error', reject).end(body);
  });
}
