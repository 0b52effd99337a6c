// The metrics listener: GET /metrics over plain HTTP, and nothing of the signing listener.

import http from 'node:http';
import { requestPath } from '../../../common/formats/request-path.ts';
import { headerTimes } from '../places.ts';
import { serveTransport, type TransportServer, type TransportServerOptions } from './transport-server.ts';

export interface MetricsSource {
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

export const MAX_SCRAPERS = 64;
/** Scrapes that come closer together share one rendering, which costs the main thread some milliseconds. */
const RENDERING_LIVES_MS = 1000;
export const SCRAPE_TIMEOUT_MS = 10_000;

/** @param scrapeTimeoutMs for a whole scrape, and for a scraper that neither asks nor reads */
export function listenMetricsOnTransport(
  source: MetricsSource,
  address: Pick<TransportServerOptions, 'transport' | 'port'>,
  scrapeTimeoutMs = SCRAPE_TIMEOUT_MS,
): Promise<TransportServer> {
  return serveTransport(createMetricsServer(source, scrapeTimeoutMs), { ...address, maxConnections: MAX_SCRAPERS });
}

export function createMetricsServer(source: MetricsSource, scrapeTimeoutMs: number): http.Server {
  const rendering = shared(source);
  const server = http.createServer(
    { requestTimeout: scrapeTimeoutMs, ...headerTimes(scrapeTimeoutMs) },
    (request, response) => {
      void answer(rendering, request, response);
    },
  );
  server.setTimeout(scrapeTimeoutMs);
  return server;
}

function shared(source: MetricsSource): MetricsSource {
  let last: { readonly at: number; readonly result: ReturnType<MetricsSource['render']> } | undefined;
  return {
    render() {
      const now = performance.now();
      if (last === undefined || now - last.at > RENDERING_LIVES_MS) last = { at: now, result: source.render() };
      return last.result;
    },
  };
}

async function answer(
  source: MetricsSource,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  request.resume();
  if (request.method !== 'GET' || requestPath(request.url) !== '/metrics') {
    response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('metrics are at GET /metrics\n');
    return;
  }
  try {
    const { contentType, body } = await source.render();
    // One scrape a connection: a client cannot queue many on one.
    response.writeHead(200, { 'content-type': contentType, connection: 'close' }).end(body);
  } catch {
    response
      .writeHead(500, { 'content-type': 'text/plain; charset=utf-8' })
      .end('the metrics could not be collected\n');
  }
}
