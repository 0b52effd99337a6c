// Which origins a browser may let in (CORS), and the refusal of requests that it sends for other pages. It trusts two
// headers that no page can set (Fetch Standard, forbidden request headers).

import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { ErrorReason } from '../api/errors.ts';

/** What a web page may read of an answer besides the usual (Fetch Standard, CORS-safelisted response headers). */
const EXPOSED_HEADERS = ['X-Request-Id', 'Retry-After'];

type Foreign = (headers: IncomingHttpHeaders) => boolean;
export type OriginRefusal = (headers: IncomingHttpHeaders) => ErrorReason | undefined;

/** Before the routes, and before admission: a preflight carries no credentials. */
export async function allowOrigins(app: FastifyInstance, origins: readonly string[] | null): Promise<void> {
  if (origins === null) return;
  const { default: cors } = await import('@fastify/cors');
  const methods: string[] = []; // each that a route is mounted with, from here on: preflights read it when they come
  app.addHook('onRoute', ({ method }) => {
    for (const name of [method].flat()) if (name !== 'OPTIONS' && !methods.includes(name)) methods.push(name);
  });
  await app.register(cors, {
    origin: origins.includes('*') ? '*' : [...origins],
    methods,
    exposedHeaders: EXPOSED_HEADERS,
    hideOptionsRoute: true,
  });
}

export function originRefusals(origins: readonly string[] | null, hosts: readonly string[] | null): OriginRefusal {
  const [isForeignOrigin, isForeignHost] = [foreignOrigin(origins), foreignHost(hosts)];
  return (headers) =>
    isForeignHost(headers) ? 'foreign_host' : isForeignOrigin(headers) ? 'foreign_origin' : undefined;
}

export function foreignOrigin(allowed: readonly string[] | null): Foreign {
  if (allowed?.includes('*') === true) return () => false;
  return (headers) => {
    const { origin, 'sec-fetch-site': site } = headers;
    if (origin === undefined && site === undefined) return false; // no browser
    if (origin !== undefined && allowed?.includes(origin) === true) return false;
    // Given twice it comes joined: whatever says cross-site counts.
    return String(site).includes('cross-site') || (origin !== undefined && !isOwnHost(origin, headers.host));
  };
}

export function foreignHost(allowed: readonly string[] | null): Foreign {
  if (allowed === null) return () => false;
  const names = new Set(allowed);
  return ({ host = '' }) => !names.has(hostName(host));
}

function hostName(host: string): string {
  return host
    .toLowerCase()
    .replace(/:[0-9]*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
}

/** The same host and port, a default port written or not. The scheme is the page's: a proxy may have ended TLS. */
function isOwnHost(origin: string, host: string | undefined): boolean {
  const page = URL.parse(origin);
  if (page === null || host === undefined || !['http:', 'https:'].includes(page.protocol)) return false;
  return page.origin === origin.toLowerCase() && URL.parse(`${page.protocol}//${host}`)?.host === page.host;
}
