// The metrics listener: plain HTTP on a port of its own, GET /metrics and nothing else. It shows no keys and no names of
// callers, and shares nothing with the signing listener, so a scraper can never reach a signing route.

import http from 'node:http';
import type { ListenAddress } from './listen.ts';

export interface MetricsSource {
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

const MAX_SCRAPERS = 64;
const SCRAPE_TIMEOUT_MS = 10_000;

export async function listenMetrics(source: MetricsSource, address: ListenAddress): Promise<http.Server> {
  const server = http.createServer(
    { requestTimeout: SCRAPE_TIMEOUT_MS, keepAliveTimeout: 75_000 },
    (request, response) => {
      void answer(source, request, response);
    },
  );
  server.maxConnections = MAX_SCRAPERS;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ host: address.host, port: address.port }, resolve);
  await promise;
  server.off('error', reject);
  return server;
}

async function answer(
  source: MetricsSource,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  request.resume();
  const path = request.url?.split('?')[0];
  if (request.method !== 'GET' || path !== '/metrics') {
    response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('metrics are at GET /metrics\n');
    return;
  }
  try {
    const { contentType, body } = await source.render();
    response.writeHead(200, { 'content-type': contentType }).end(body);
  } catch {
    response
      .writeHead(500, { 'content-type': 'text/plain; charset=utf-8' })
      .end('the metrics could not be collected\n');
  }
}
