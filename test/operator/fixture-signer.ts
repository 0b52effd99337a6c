// A server with a signer's certificate and given answers, for what a real signer does not do on demand: refusals of
// every kind, broken connections, answers of something else. It remembers what reached it.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ErrorReason, SignerError } from '../../signer/api/errors.ts';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

export interface FixtureSigner {
  readonly url: string;
  readonly received: readonly Received[];
  close(): Promise<void>;
}

export type Answerer = (received: Received, response: ServerResponse, request: IncomingMessage) => void;

export async function startFixtureSigner(
  answer: Answerer,
  certificate?: { readonly cert: string; readonly key: string },
): Promise<FixtureSigner> {
  const received: Received[] = [];
  const listener = answering(answer, received);
  const server =
    certificate === undefined
      ? createPlainServer(listener)
      : createServer({ cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) }, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: certificate === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    received,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export function answering(answer: Answerer, received: Received[]): RequestListener {
  return (request, response) => {
    const onBody = (body: string): void => {
      const { method = '', url = '', headers } = request;
      const entry = { method, path: url, authorization: headers.authorization, body };
      received.push(entry);
      answer(entry, response, request);
    };
    readBody(request).then(onBody, () => undefined); // a client that went away has asked nothing
  };
}

export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(value));
}

/** As signer/http/replies.ts writes it. */
export function answerRefusal(response: ServerResponse, reason: ErrorReason, hint?: string): void {
  const { status: code, message } = new SignerError(reason, hint === undefined ? {} : { hint });
  answerJson(response, code, { code, reason, message, request_id: '01JTESTREQUEST' });
}

async function readBody(request: IncomingMessage): Promise<string> {
  request.setEncoding('utf8');
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
