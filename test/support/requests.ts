// Requests as validator clients send them, and keys to send them for. All keys here are TEST keys.

export { type TestKey, testKey } from '../../rehearsal/test-key.ts';
export { attestation, block, forkInfo, MAINNET_ROOT, randaoReveal, rootOf, voluntaryExit } from './messages.ts';

export const TEST_TOKEN = 'sr_client_TEST_TOKEN_of_the_end_to_end_tests_0001';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** One request; `body` is sent as JSON unless it is text already. */
export async function call(
  url: string,
  options: {
    readonly method?: string;
    readonly token?: string | null;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Answer> {
  const { token = TEST_TOKEN, body } = options;
  const response = await fetch(url, {
    method: options.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : {} };
}

/** POST /api/v1/eth2/sign/{publicKey} */
export function signCall(
  base: string,
  publicKey: string,
  body: unknown,
  options: Omit<Parameters<typeof call>[1] & object, 'body' | 'method'> = {},
): Promise<Answer> {
  return call(`${base}/api/v1/eth2/sign/${publicKey}`, { ...options, body });
}

/** POST /api/v1/eth2/sign: one request for many keys. */
export function batchCall(
  base: string,
  identifiers: readonly unknown[],
  signingRequest: unknown,
  options: Omit<Parameters<typeof call>[1] & object, 'body' | 'method'> = {},
): Promise<Answer> {
  const body = { identifiers, signing_request: signingRequest };
  return call(`${base}/api/v1/eth2/sign`, { ...options, body });
}
