// Every value of one header, in order. Node's `headers` silently drops all but the first Authorization and joins
// others, and `headersDistinct` makes a table of all headers for each request.

import type { IncomingMessage } from 'node:http';

/** @param name in lower case; undefined when the request has no such header */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] | undefined {
  let values: string[] | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const given = rawHeaders[at] ?? '';
    if (given.length !== name.length || given.toLowerCase() !== name) continue;
    values ??= [];
    values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}
