// The direct road and the framework's lead to the same answers and the same records. A query is all that makes a request the
// framework's here: the route ignores it.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Admission } from '../../../enclave/http/admission.ts';
import { trackOpenRequests } from '../../../enclave/http/open-requests.ts';
import { errorAnswer, toSignerError } from '../../../enclave/http/replies.ts';
import { directSigning, MAX_DIRECT_BODY_BYTES, plainIdentifier } from '../../../enclave/http/routes/direct-signing.ts';
import type { RunningSigner } from '../../../rehearsal/signer.ts';
import { deploy } from '../../support/deployment.ts';
import {
  attestation,
  forkInfo,
  randaoReveal,
  rootOf,
  TEST_TOKEN,
  testKey,
  voluntaryExit,
} from '../../support/requests.ts';

const NO_EXITS = 'sr_client_TEST_TOKEN_that_may_not_exit_00000001';
const ELSEWHERE = 'sr_client_TEST_TOKEN_bound_to_another_net_00001';
const KEY = testKey(0).publicKey;

const deployment = deploy(1, {
  server: { max_request_body_bytes: 8192 },
  static_auth: {
    policies: [
      { name: 'one-key', rules: [{ effect: 'allow', scopes: ['sign'], keys: [KEY, testKey(9).publicKey] }] },
      {
        name: 'no-exits',
        rules: [
          { effect: 'allow', scopes: ['sign'] },
          { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
        ],
      },
    ],
    tokens: [
      { secret: TEST_TOKEN, policies: ['one-key'] },
      { secret: NO_EXITS, policies: ['no-exits'] },
      { secret: ELSEWHERE, policies: ['one-key'], bound_cidrs: ['10.0.0.0/8'] },
    ],
  },
});
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start();
  await send(vote({ source: 20, target: 21 }), '');
});
afterAll(() => signer.stop());

interface Request {
  readonly key?: string;
  readonly body?: string;
  readonly token?: string | null;
  readonly headers?: readonly string[];
  /** Instead of the body's own. */
  readonly announced?: number;
  /** The client goes away without sending the rest of what it announced. */
  readonly leaves?: boolean;
}

let requests = 0;

/** Everything that comes back on a connection of its own, and the audit line; what differs by its nature is blanked. */
async function send(request: Request, query: string): Promise<{ answer: string; line: unknown }> {
  const { key = KEY, body = '', token = TEST_TOKEN, headers = [] } = request;
  requests += 1;
  const id = `request-${requests}`;
  const head = [
    `POST /api/v1/eth2/sign/${key}${query} HTTP/1.1`,
    'Host: x',
    `X-Request-Id: ${id}`,
    'Connection: close',
    `Content-Length: ${request.announced ?? Buffer.byteLength(body)}`,
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
    ...headers,
  ];
  const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
  const answer = await exchange(bytes, request.leaves === true);
  const { time: _time, duration_ms: _took, ...line } = await signer.logged('request', { request_id: id });
  const text = JSON.stringify({ answer: answer.replace(/^Date: .*$/m, 'Date:'), line });
  return JSON.parse(text.replaceAll(id, 'ID'));
}

function exchange(bytes: Buffer, leaves: boolean): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(Number(new URL(signer.url).port), '127.0.0.1');
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.on('error', () => undefined).on('close', () => resolve(text));
    socket.write(bytes, () => leaves && socket.destroy());
  });
}

const json = (body: unknown): Request => ({ body: JSON.stringify(body) });
const vote = (options: Parameters<typeof attestation>[0]): Request => json(attestation(options));

describe('by either road', () => {
  it.each<[string, Request, number]>([
    ['a signature as JSON', { ...json(randaoReveal()), headers: ['Accept: application/json'] }, 200],
    ['a signature as text', json(randaoReveal()), 200],
    ['a signature without 0x', { ...json(randaoReveal()), key: KEY.slice(2) }, 200],
    ['a signature with a content type', { ...json(randaoReveal()), headers: ['Content-Type: application/json'] }, 200],
    ['a signature in upper case', { ...json(randaoReveal()), key: `0x${KEY.slice(2).toUpperCase()}` }, 200],
    ['a repeated vote', vote({ source: 20, target: 21 }), 200],
    ['a slashable vote', vote({ source: 20, target: 21, head: rootOf(9) }), 412],
    ['another network', json({ ...attestation(), fork_info: forkInfo(rootOf(0x33)) }), 400],
    ['a wrong root', json({ ...attestation(), signingRoot: rootOf(9) }), 400],
    ['an unknown operation', json({ ...attestation(), type: 'DEPOSIT' }), 400],
    ['a body that is not JSON', { body: 'not json' }, 400],
    ['a member given twice', { body: '{"type":"ATTESTATION","type":"ATTESTATION"}' }, 400],
    ['no token', { ...json(randaoReveal()), token: null }, 401],
    ['a malformed credential', { ...json(randaoReveal()), token: null, headers: ['Authorization: Digest x'] }, 401],
    ['two credentials', { ...json(randaoReveal()), headers: [`Authorization: Bearer ${TEST_TOKEN}`] }, 401],
    ['an unknown token', { ...json(randaoReveal()), token: 'sr_client_unknown_unknown_unknown' }, 403],
    ['a token from elsewhere', { ...json(randaoReveal()), token: ELSEWHERE }, 403],
    ['a key that is not allowed', { ...json(randaoReveal()), key: testKey(5).publicKey }, 403],
    ['an operation that is denied', { ...json(voluntaryExit()), token: NO_EXITS }, 403],
    ['a web page', { ...json(randaoReveal()), headers: ['Origin: https://example.org'] }, 403],
    ['a key that is not loaded', { ...json(randaoReveal()), key: testKey(9).publicKey }, 404],
    ['a body that is too large', { body: 'x'.repeat(8193) }, 413],
    ['a proxied client', { ...json(randaoReveal()), headers: ['X-Forwarded-For: 192.0.2.1'] }, 200],
  ])('%s', async (_case, request, status) => {
    const direct = await send(request, '');
    expect(direct.answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(direct).toEqual(await send(request, '?framework'));
  });

  it('a client that goes away in the middle of its body', async () => {
    const request = { ...json(randaoReveal()), announced: 5000, leaves: true };
    const direct = await send(request, '');
    expect(direct.line).toMatchObject({ outcome: 'refused', reason: 'client_closed' });
    expect(direct).toEqual(await send(request, '?framework'));
  });
});

describe('a fault is the answer to its request and ends nothing else', () => {
  const admitted: Admission = {
    admit: () => undefined,
    bodyGrows: () => 1,
    bodyRead() {},
    readmit: () => undefined,
    release() {},
  };
  const fault = (): never => {
    throw new TypeError('TEST fault');
  };

  it.each<[string, Partial<Admission>, () => Promise<never>]>([
    ['of admission', { admit: fault }, fault],
    ['while the body comes in', { bodyGrows: fault }, fault],
    ['when the body is here', { bodyRead: fault }, fault],
    ['when it is admitted again', { readmit: fault }, fault],
    ['of the route, before it waits for anything', {}, fault],
    ['of the route', {}, async () => fault()],
  ])('%s', async (_case, admission, sign) => {
    const ended: string[] = [];
    const served = directSigning({
      admission: { ...admitted, ...admission },
      openRequests: trackOpenRequests((request) => void ended.push(String(request.context.reason))),
      sign,
      answerThrown: (request, thrown) => errorAnswer(request, toSignerError(thrown)),
      clock: { now: () => 0, monotonic: () => 0 },
    });
    const server = createServer((request, response) => void served(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/eth2/sign/${KEY}`;
    const answer = await fetch(url, { method: 'POST', body: Buffer.from('{}'), headers: { connection: 'close' } });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ reason: 'internal_error' });
    server.close();
    await once(server, 'close');
    expect(ended).toEqual(['internal_error']);
  });
});

describe('the direct road is for', () => {
  const url = `/api/v1/eth2/sign/${KEY}`;
  const headers = { 'content-length': '700' };

  it.each([
    { method: 'POST', url, headers },
    { method: 'POST', url, headers: { ...headers, 'content-type': 'application/json' } },
    { method: 'POST', url, headers: { 'content-length': String(MAX_DIRECT_BODY_BYTES) } },
  ])('the plain request of a client: %j', (request) => expect(plainIdentifier(request)).toBe(KEY));

  it.each([
    { method: 'GET', url, headers },
    { method: 'HEAD', url, headers },
    { method: 'OPTIONS', url, headers },
    { method: 'POST', url: `${url}/`, headers },
    { method: 'POST', url: `${url}?a=b`, headers },
    { method: 'POST', url: `http://x${url}`, headers },
    { method: 'POST', url: '/api/v1/eth2/sign/', headers },
    { method: 'POST', url: url.slice(0, -1), headers },
    { method: 'POST', url: `${url}0`, headers },
    { method: 'POST', url: url.replace('0x', '%30x'), headers },
    { method: 'POST', url: '/api/v1/eth2/publicKeys', headers },
    { method: 'POST', url, headers: {} },
    { method: 'POST', url, headers: { 'content-length': '0' } },
    { method: 'POST', url, headers: { 'content-length': 'x' } },
    { method: 'POST', url, headers: { 'content-length': String(MAX_DIRECT_BODY_BYTES + 1) } },
    { method: 'POST', url, headers: { ...headers, 'transfer-encoding': 'chunked' } },
    { method: 'POST', url, headers: { ...headers, 'content-type': 'text/plain' } },
    { method: 'POST', url, headers: { ...headers, 'content-type': 'nonsense' } },
  ])('and for nothing else: %j', (request) => expect(plainIdentifier(request)).toBeUndefined());
});
