// The proxy's own metrics: plain HTTP, GET /metrics and nothing else, on loopback unless told otherwise.

import { createServer, type Server } from 'node:http';
import type { ListenAddress } from './configuration.ts';
import { MAX_REQUEST_HEAD_BYTES, MAX_SCRAPERS, SCRAPE_TIMEOUT_MS } from './limits.ts';
import type { Metrics } from './metrics.ts';

export interface MetricsListener {
  readonly port: number;
  close(): Promise<void>;
}

/** @throws the system's error, such as EADDRINUSE */
export async function listenMetrics(
  metrics: Metrics,
  { host, port }: ListenAddress,
  scrapeTimeoutMs = SCRAPE_TIMEOUT_MS,
): Promise<MetricsListener> {
  const times = {
    requestTimeout: scrapeTimeoutMs,
    headersTimeout: scrapeTimeoutMs,
    connectionsCheckingInterval: Math.ceil(scrapeTimeoutMs / 4), // Node would look every 30 s
  };
  const server = createServer({ ...times, maxHeaderSize: MAX_REQUEST_HEAD_BYTES }, (request, response) => {
    request.resume();
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
      response.end('metrics are at GET /metrics\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', connection: 'close' });
    response.end(metrics.render());
  });
  server.maxConnections = MAX_SCRAPERS;
  server.setTimeout(scrapeTimeoutMs);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ host, port }, resolve);
  await promise;
  server.off('error', reject);
  server.on('error', () => undefined); // an accept that failed: the next scrape comes
  return {
    port: boundPort(server),
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function boundPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return address.port;
}
