// Requests to signers that are killed, over connections that stay open: `fetch` took as much time as the signers did.

import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { TEST_TOKEN } from '../support/requests.ts';

const agent = new Agent({ keepAlive: true });

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** Undefined when the signer did not answer: it ended, or was killed in the middle. */
export function ask(url: string, body: unknown, method = 'POST'): Promise<Reply | undefined> {
  const content = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${TEST_TOKEN}`,
    accept: 'application/json',
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
  };
  return new Promise((resolve) => {
    request(url, { agent, method, headers }, (response) => {
      text(response).then(
        (answer) => {
          const isJson = response.headers['content-type']?.startsWith('application/json') === true;
          resolve({ status: response.statusCode ?? 0, text: answer, json: isJson ? JSON.parse(answer) : {} });
        },
        () => resolve(undefined),
      );
    })
      .once('error', () => resolve(undefined))
      .end(content);
  });
}
