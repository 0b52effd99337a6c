// Requests that a route cannot read, hundreds of each shape, against a real process: each is refused, none takes a
// place for good, and the signer signs on after the time limit of the route. Once, one such request ended the process
// then.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy, FULL_ACCESS } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';

const MONITOR = 'sr_client_TEST_TOKEN_of_a_monitor_that_lists_keys_0001';
const EACH = 200;
const AT_ONCE = 20;
const SHAPES = ['limit=abc', 'cursor=', 'status=x', 'x=1', '%', 'status=active&status=active', 'limit=1&limit=2'];

const deployment = deploy(1, {
  server: { request_timeout_seconds: 1 },
  chamber: {
    keys: {
      lifecycle: { enabled: true, request_timeout_seconds: 1 },
      import: { enabled: true, request_timeout_seconds: 1 },
    },
  },
  http: { key_manager_api: { enabled: true, request_timeout_seconds: 1 } },
  static_auth: {
    policies: [
      FULL_ACCESS,
      {
        name: 'monitor',
        rules: [
          {
            effect: 'allow',
            scopes: [
              'chamber_keys_list',
              'chamber_keys_patch',
              'chamber_keys_delete',
              'chamber_keys_import',
              'list_keys',
              'delete_keys',
              'import_keystores',
            ],
          },
        ],
      },
    ],
    tokens: [
      { secret: TEST_TOKEN, policies: ['full'] },
      { secret: MONITOR, policies: ['monitor'] },
    ],
  },
});
const key = deployment.keys[0]?.publicKey ?? '';
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start();
});
afterAll(() => signer.stop());

/** @returns every status that there was */
async function hundreds(ask: () => Promise<{ readonly status: number }>): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>();
  for (let sent = 0; sent < EACH; sent += AT_ONCE) {
    for (const { status } of await Promise.all(Array.from({ length: AT_ONCE }, ask))) statuses.add(status);
  }
  return statuses;
}

/** The routes have 1 s here, and nothing says when it is over: a limit that passes is what this test is about. */
const limitIsOver = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1500));

it.each(SHAPES)('GET /api/v1/chamber/keys?%s, hundreds of times', async (query) => {
  const path = `${signer.url}/api/v1/chamber/keys?${query}`;
  expect(await hundreds(() => call(path, { token: MONITOR }))).toEqual(new Set([400]));
  expect((await call(`${signer.url}/api/v1/chamber/keys`, { token: MONITOR })).status).toBe(200);
});

it.each([
  ['POST', '/api/v1/chamber/keys'],
  ['PATCH', '/api/v1/chamber/keys'],
  ['DELETE', '/api/v1/chamber/keys'],
  ['POST', '/eth/v1/keystores'],
  ['DELETE', '/eth/v1/keystores'],
])('%s %s with a body that is none, hundreds of times', async (method, path) => {
  const asked = () => call(`${signer.url}${path}`, { token: MONITOR, method, body: '{' });
  expect(await hundreds(asked)).toEqual(new Set([400]));
});

it(
  'the signer signs on when the time limit of the routes is over, and nothing escaped a route',
  async () => {
    await limitIsOver();
    // A second is little on a busy machine: then it is asked again.
    await expect.poll(async () => (await signCall(signer.url, key, randaoReveal())).status).toBe(200);
    const metrics = await (await fetch(signer.metricsUrl)).text();
    expect(metrics).toMatch(/^svc_route_faults_total\{kind="escaped"\} 0$/m);
    expect(metrics).toMatch(/^svc_route_faults_total\{kind="thrown"\} 0$/m);
  },
  LONGEST_WAIT_MS,
);
