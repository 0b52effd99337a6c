// Which headers go through the tunnel: no client can bring a credential, a forwarded address or a framing of its own
// (RFC 9110 §7.6.1).

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

const REQUEST_HEADERS = [
  ...['accept', 'content-type', 'content-encoding', 'content-length', 'user-agent', 'x-request-id'],
  ...['traceparent', 'tracestate'], // W3C Trace Context
] as const;

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
]);

export function requestHeaders(headers: IncomingHttpHeaders, host: string, authorization: string): OutgoingHttpHeaders {
  const passed = REQUEST_HEADERS.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, headers[name]] as const],
  );
  return {
    ...Object.fromEntries(passed),
    // A body without a length is sent as it came, in chunks; node:http frames none for every method by itself.
    ...(headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' }),
    host,
    authorization,
    connection: 'keep-alive',
  };
}

export function answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const passed = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !named.includes(name));
  return Object.fromEntries(passed);
}
