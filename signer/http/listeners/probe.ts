// The plain listener of an enclave, for liveness and readiness only (specification/enclave.md#shape).

import http from 'node:http';
import { requestPath } from '../../../common/formats/request-path.ts';
import { SignerError } from '../../api/errors.ts';
import type { Transport } from '../../native/transport.ts';
import { requestId } from '../context.ts';
import { headerTimes } from '../places.ts';
import { answerClientError, errorBody } from '../refusals.ts';
import { type HealthAnswer, healthAnswer, type Readiness, UPCHECK_ANSWER } from '../routes/health.ts';
import { serveTransport, type TransportServer } from './transport-server.ts';

interface ProbeListenOptions {
  readonly transport: Transport;
  readonly port: number;
  readonly onRequest?: (route: string, status: number) => void;
  readonly requestTimeoutMs?: number;
}

export const MAX_PROBE_CONNECTIONS = 256;
const REQUEST_TIMEOUT_MS = 10_000;

export function listenProbes(readiness: Readiness, options: ProbeListenOptions): Promise<TransportServer> {
  const { transport, port, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const server = http.createServer(
    { requestTimeout: requestTimeoutMs, keepAliveTimeout: requestTimeoutMs, ...headerTimes(requestTimeoutMs) },
    (request, response) => {
      request.resume();
      const path = requestPath(request.url);
      const answers: Readonly<Record<string, () => HealthAnswer>> = {
        '/upcheck': () => UPCHECK_ANSWER,
        '/healthcheck': () => healthAnswer(readiness),
      };
      const isRead = request.method === 'GET' || request.method === 'HEAD'; // node:http leaves the body of a HEAD out
      const found = isRead && Object.hasOwn(answers, path) ? answers[path] : undefined;
      const { status, headers, body } = found?.() ?? notHere(request);
      options.onRequest?.(found === undefined ? 'unknown' : path, status);
      const length = { 'content-length': Buffer.byteLength(body) };
      const ending = found === undefined ? { connection: 'close' } : {};
      response.writeHead(status, { ...headers, ...length, ...ending }).end(body);
    },
  );
  server.on('clientError', answerClientError);
  server.setTimeout(requestTimeoutMs);
  return serveTransport(server, { transport, port, maxConnections: MAX_PROBE_CONNECTIONS });
}

function notHere(request: http.IncomingMessage): HealthAnswer {
  const id = requestId(request);
  const error = new SignerError('not_found', {
    hint: 'this port answers /upcheck and /healthcheck; everything else needs the RA-TLS listener',
  });
  return {
    status: error.status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'x-request-id': id },
    body: JSON.stringify(errorBody(error, id)),
  };
}
