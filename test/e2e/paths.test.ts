// One path for everybody: duplicate slashes are one, on each listener, for the rules and in the audit line; what `.`,
// `..` or an escaped slash would make of another path is not there. Clients put a URL with a trailing slash together
// with a path like this. A real process. TEST keys.

import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { deploy, FULL_ACCESS } from '../support/deployment.ts';
import { randaoReveal, TEST_TOKEN, testKey } from '../support/requests.ts';

const LISTS_ONLY = 'sr_client_TEST_TOKEN_that_only_lists_keys_00000001';
const KEY = testKey(0).publicKey;

const deployment = deploy(1, {
  http: { key_manager_api: { enabled: true } },
  static_auth: {
    policies: [FULL_ACCESS, { name: 'lists', rules: [{ effect: 'allow', scopes: ['list_keys'] }] }],
    tokens: [
      { secret: TEST_TOKEN, policies: ['full'] },
      { secret: LISTS_ONLY, policies: ['lists'], name: 'lists' },
    ],
  },
});
const pair = makeCertificate(deployment.folder, 'tls');
let signer: RunningSigner;
beforeAll(async () => {
  const file = { cert_path: pair.cert, key_path: pair.key };
  signer = await deployment.start({
    config: { tls: { mode: 'file', listen_address: '127.0.0.1', listen_port: 0, file } },
  });
});
afterAll(() => signer.stop());

interface Asked {
  readonly body?: unknown;
  readonly token?: string;
}

/** The path goes out as it stands here. */
async function ask(base: string, path: string, { body, token = TEST_TOKEN }: Asked = {}) {
  const { hostname, port, protocol } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options = {
    ...{ host: hostname, port, path, method: body === undefined ? 'GET' : 'POST' },
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
  };
  const request =
    protocol === 'https:'
      ? https.request({ ...options, rejectUnauthorized: false }, resolve)
      : http.request(options, resolve);
  request.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  const response = await promise;
  return { status: response.statusCode, text: await text(response), id: response.headers['x-request-id'] };
}

const LISTENERS = { http: () => signer.url, tls: () => signer.tlsUrl ?? '' } as const;

describe.each(Object.entries(LISTENERS))('the listener %s', (_, url) => {
  it.each([
    ['//upcheck', 200],
    ['///upcheck//', 200],
    ['//healthcheck?verbose//', 200],
    ['//api/v1/eth2/publicKeys', 200],
    ['/api//v1/eth2///publicKeys/', 200],
    ['//eth/v1/keystores', 403],
    ['/./upcheck', 404],
    ['/x/../upcheck', 404],
    ['/%2Fupcheck', 404],
    ['/api/v1/eth2%2FpublicKeys', 404],
    ['/api%2f/v1/eth2/publicKeys', 404],
    ['/api\\v1/eth2/publicKeys', 404],
  ])('GET %s is %i', async (path, status) => {
    expect((await ask(url(), path)).status).toBe(status);
  });

  it.each([`//api/v1/eth2/sign/${KEY}`, `/api/v1/eth2//sign//${KEY}/`])('POST %s signs', async (path) => {
    const { status, text, id = '' } = await ask(url(), path, { body: randaoReveal() });
    expect([status, JSON.parse(text)]).toEqual([200, { signature: expect.stringMatching(/^0x[0-9a-f]{192}$/) }]);
    expect(await signer.logged('request', { request_id: id })).toMatchObject({
      ...{ audit: true, scope: 'sign', public_key: KEY, outcome: 'ok', status: 200 },
    });
  });

  it('asks the same rules, and its audit line names the same scope', async () => {
    const answers = await Promise.all([
      ask(url(), '//eth/v1/keystores', { token: LISTS_ONLY }),
      ask(url(), `//api/v1/eth2/sign/${KEY}`, { token: LISTS_ONLY, body: randaoReveal() }),
      ask(url(), '//api/v1/eth2/sign', { token: LISTS_ONLY, body: {} }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 403, 403]);
    for (const [index, scope] of ['list_keys', 'sign', 'sign'].entries()) {
      const line = await signer.logged('request', { request_id: answers[index]?.id });
      expect(line).toMatchObject({ audit: true, accessor: 'static:lists', scope });
    }
  });
});

it('metrics are at //metrics, too, and count the route', async () => {
  await ask(signer.url, '//upcheck');
  const base = signer.metricsUrl.replace(/\/metrics$/, '');
  for (const path of ['//metrics', '/metrics/', '//metrics?x=//']) {
    const { status, text } = await ask(base, path);
    expect([path, status]).toEqual([path, 200]);
    expect(text).toContain('route="/upcheck"');
    expect(text).not.toContain('route="//');
  }
  for (const path of ['/x//metrics', '/../metrics', '/%2Fmetrics']) {
    expect([path, (await ask(base, path)).status]).toEqual([path, 404]);
  }
});
