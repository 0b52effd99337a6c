// Requests to the signer of a machine, as a client of it sends them: over TLS, to its own address.

import { request } from 'node:https';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export function ask(
  host: string,
  path: string,
  token: string,
  body?: object,
  method = body === undefined ? 'GET' : 'POST',
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' };
  const options = { method, headers, rejectUnauthorized: false };
  const asked = request(`https://${host}:9443${path}`, options, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
  });
  asked.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
}

/** Why a request was refused; `signed` when it was not. */
export function outcomeOf({ status, text }: Answer): string {
  return status === 200 ? 'signed' : String((JSON.parse(text) as { reason: unknown }).reason);
}
