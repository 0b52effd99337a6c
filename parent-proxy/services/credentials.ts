// Port 7002: `GET /credentials`. One request a connection. The port is the enclave's alone, and no log or error holds
// the credentials.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { CREDENTIALS_PATH, CREDENTIALS_PORT } from '../../signer/api/parent-ports.ts';
import type { PausingClock } from '../clock.ts';
import { createGate } from '../forwarding/gate.ts';
import { CREDENTIALS_CONNECTION_TIMEOUT_MS, MAX_CREDENTIALS_CONNECTIONS, MAX_REQUEST_HEAD_BYTES } from '../limits.ts';
import { errorWord, pacedWarning } from '../log.ts';
import type { ProxyWorld } from '../world.ts';
import type { Credentials, CredentialsProvider } from './instance-credentials.ts';
import type { Service } from './service.ts';

const service = 'credentials';
/** Session credentials whose end the chain does not know (from the environment) are asked for again after this. */
const UNKNOWN_EXPIRY_MS = 15 * 60_000;

/** @param provider asked for every request; it decides what it keeps @throws when the port is taken */
export async function listenCredentials(provider: CredentialsProvider, world: ProxyWorld): Promise<Service> {
  const { transport, metrics, clock } = world;
  const gate = createGate(service, CREDENTIALS_PORT, MAX_CREDENTIALS_CONNECTIONS, metrics);
  const served = metrics.at('connections', { service, port: CREDENTIALS_PORT, outcome: 'served' });
  const advice =
    'no AWS credentials for the enclave: look at the role of the instance, or at `aws sts get-caller-identity` here';
  const warn = pacedWarning(world.logger.module('credentials'), clock, advice);
  const count = (outcome: string): void => metrics.at('credentials', { outcome }).add(1);

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'GET' || request.url !== CREDENTIALS_PATH) {
      count('refused');
      reply(response, 404, { code: 'NotFound', message: `credentials are at GET ${CREDENTIALS_PATH}` });
      return;
    }
    try {
      const body = containerCredentials(await provider(), clock);
      count('ok');
      metrics.at('credentialsExpiry', {}).set(Date.parse(body.Expiration) / 1000);
      reply(response, 200, body);
    } catch (error) {
      count('unavailable');
      warn({ error: errorWord(error) });
      reply(response, 503, { code: 'CredentialsUnavailable', message: 'the parent has no credentials to give' });
    }
  };
  const server = createServer(
    { maxHeaderSize: MAX_REQUEST_HEAD_BYTES, keepAlive: false },
    (request, response) => void answer(request, response),
  );
  server.on('clientError', (_, socket) => {
    count('refused');
    socket.destroy();
  });

  const listener = await transport.listen(CREDENTIALS_PORT, (socket) => {
    if (!gate.admit(socket)) return;
    served.add(1);
    // The HTTP server's own time limits need a listener of its own; one for the whole connection covers them all.
    const timer = setTimeout(() => socket.destroy(), CREDENTIALS_CONNECTION_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timer));
    server.emit('connection', socket);
  });
  return {
    async close() {
      await listener.close();
      gate.cutAll();
      await gate.empty();
    },
  };
}

/** An IAM user's key pair has no end: it is not handed over. */
class LastingCredentialsError extends Error {
  constructor() {
    super('the credentials are lasting ones, without a session token');
    this.name = 'LastingCredentialsError';
  }
}

interface ContainerCredentials {
  readonly AccessKeyId: string;
  readonly SecretAccessKey: string;
  readonly Token: string;
  readonly Expiration: string;
}

function containerCredentials(credentials: Credentials, clock: PausingClock): ContainerCredentials {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = credentials;
  if (sessionToken === undefined || sessionToken === '') throw new LastingCredentialsError();
  return {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: sessionToken,
    Expiration: (expiration ?? new Date(clock.now() + UNKNOWN_EXPIRY_MS)).toISOString(),
  };
}

function reply(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    connection: 'close',
  });
  response.end(bytes);
}
