// The signing route over a socket: for every way to ask, one answer and one audit line that agree, and a fault that
// ends with its request.

import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import type { RunningSigner } from '../../../rehearsal/signer.ts';
import type { Authenticator, Caller } from '../../../signer/auth/authenticator.ts';
import { parseSafeCidrs } from '../../../signer/auth/cidr.ts';
import { compilePolicy, joinAccess } from '../../../signer/auth/evaluate.ts';
import { createStaticAuthenticator } from '../../../signer/auth/static.ts';
import type { AppParts } from '../../../signer/http/app.ts';
import type { KeyStore } from '../../../signer/keys/store.ts';
import { MAX_BODY_READ_AT_ONCE_BYTES } from '../../../signer/sign/envelopes/envelope-reader.ts';
import { keylessApp } from '../../support/auth-app.ts';
import { deploy } from '../../support/deployment.ts';
import { recordingLog } from '../../support/recording-log.ts';
import {
  attestation,
  block,
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
  await send(vote({ source: 20, target: 21 }));
});
afterAll(() => signer.stop());

interface Request {
  readonly key?: string;
  readonly query?: string;
  readonly body?: string;
  readonly token?: string | null;
  readonly headers?: readonly string[];
  /** Instead of the body's own. */
  readonly announced?: number;
  /** The client goes away without sending the rest of what it announced. */
  readonly leaves?: boolean;
}

const CHUNKED = 'Transfer-Encoding: chunked';

let requests = 0;

interface Exchange {
  readonly id: string;
  /** Everything that comes back, on a connection of its own. */
  readonly answer: string;
  readonly line: Readonly<Record<string, unknown>>;
}

async function send(request: Request): Promise<Exchange> {
  const { key = KEY, query = '', body = '', token = TEST_TOKEN, headers = [] } = request;
  requests += 1;
  const id = `request-${requests}`;
  const length = `Content-Length: ${request.announced ?? Buffer.byteLength(body)}`;
  const head = [
    `POST /api/v1/eth2/sign/${key}${query} HTTP/1.1`,
    'Host: x',
    `X-Request-Id: ${id}`,
    'Connection: close',
    ...(headers.includes(CHUNKED) ? [] : [length]),
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
    ...headers,
  ];
  const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
  const answer = await exchange(bytes, request.leaves === true);
  return { id, answer, line: await signer.logged('request', { request_id: id }) };
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

/** In pieces of at most 100 bytes. */
function chunked(body: unknown): Request {
  const pieces = JSON.stringify(body).match(/.{1,100}/gs) ?? [];
  const parts = [...pieces, ''].map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
  return { body: parts.join(''), headers: [CHUNKED] };
}

describe('is answered, and recorded in one line that says the same:', () => {
  it.each<[string, Request]>([
    ['a signature as JSON', { ...json(randaoReveal()), headers: ['Accept: application/json'] }],
    ['a signature as text', json(randaoReveal())],
    ['a signature without 0x', { ...json(randaoReveal()), key: KEY.slice(2) }],
    ['a signature in upper case', { ...json(randaoReveal()), key: `0x${KEY.slice(2).toUpperCase()}` }],
    ['a path that is spelled with %', { ...json(randaoReveal()), key: KEY.replace('0x', '%30x') }],
    ['a path with a slash at its end', { ...json(randaoReveal()), query: '/' }],
    ['a query, which means nothing', { ...json(randaoReveal()), query: '?a=b' }],
    ['a body in pieces', chunked(randaoReveal())],
    ['a content type', { ...json(randaoReveal()), headers: ['Content-Type: application/json'] }],
    ['another content type', { ...json(randaoReveal()), headers: ['Content-Type: text/plain'] }],
    ['a repeated vote', vote({ source: 20, target: 21 })],
    ['a proxied client', { ...json(randaoReveal()), headers: ['X-Forwarded-For: 192.0.2.1'] }],
  ])('%s', async (_case, request) => {
    const { id, answer, line } = await send(request);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer).toMatch(new RegExp(`^x-request-id: ${id}\r$`, 'im'));
    const asJson = request.headers?.includes('Accept: application/json') === true;
    expect(answer).toMatch(asJson ? /\r\n\r\n\{"signature":"0x[0-9a-f]{192}"\}$/ : /\r\n\r\n0x[0-9a-f]{192}$/);
    expect(line).toMatchObject({ audit: true, outcome: 'ok', status: 200, scope: 'sign', public_key: KEY });
    expect(line).not.toHaveProperty('reason');
  });

  it.each<[string, Request, number, string]>([
    ['a slashable vote', vote({ source: 20, target: 21, head: rootOf(9) }), 412, 'double_vote'],
    ['another network', json({ ...attestation(), fork_info: forkInfo(rootOf(0x33)) }), 400, 'network_mismatch'],
    ['a wrong root', json({ ...attestation(), signingRoot: rootOf(9) }), 400, 'signing_root_mismatch'],
    ['an unknown operation', json({ ...attestation(), type: 'DEPOSIT' }), 400, 'unsupported_operation'],
    ['a body that is not JSON', { body: 'not json' }, 400, 'malformed_body'],
    ['no body', {}, 400, 'malformed_body'],
    ['a member given twice', { body: '{"type":"ATTESTATION","type":"ATTESTATION"}' }, 400, 'malformed_body'],
    ['no token', { ...json(randaoReveal()), token: null }, 401, 'missing_credentials'],
    ['a malformed credential', { token: null, headers: ['Authorization: Digest x'] }, 401, 'malformed_credentials'],
    ['two credentials', { headers: [`Authorization: Bearer ${TEST_TOKEN}`] }, 401, 'malformed_credentials'],
    ['an unknown token', { ...json(randaoReveal()), token: 'sr_client_unknown_unknown_unknown' }, 403, 'invalid_token'],
    ['a token from elsewhere', { ...json(randaoReveal()), token: ELSEWHERE }, 403, 'peer_not_allowed'],
    ['a key that is not allowed', { ...json(randaoReveal()), key: testKey(5).publicKey }, 403, 'denied'],
    ['an operation that is denied', { ...json(voluntaryExit()), token: NO_EXITS }, 403, 'denied'],
    ['a web page', { ...json(randaoReveal()), headers: ['Origin: https://example.org'] }, 403, 'foreign_origin'],
    ['a key that is not loaded', { ...json(randaoReveal()), key: testKey(9).publicKey }, 404, 'unknown_key'],
    ['a body that is too large', { body: 'x'.repeat(8193) }, 413, 'body_too_large'],
    ['pieces that are too large', chunked('x'.repeat(8193)), 413, 'body_too_large'],
  ])('%s', async (_case, request, status, reason) => {
    const { id, answer, line } = await send(request);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/^content-type: application\/json/im);
    expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ code: status, reason, request_id: id });
    expect(line).toMatchObject({ audit: true, outcome: 'refused', status, reason });
  });

  it('a client that goes away in the middle of its body', async () => {
    const { answer, line } = await send({ ...json(randaoReveal()), announced: 5000, leaves: true });
    expect(answer).toBe('');
    expect(line).toMatchObject({ outcome: 'refused', reason: 'client_closed' });
  });
});

describe('the audit line says which duty it was, and what was to be signed:', () => {
  const signingRoot = expect.stringMatching(/^0x[0-9a-f]{64}$/);
  it.each<[string, Request, object]>([
    ['a vote', vote({ source: 30, target: 31 }), { slot: 992, source_epoch: 30, target_epoch: 31 }],
    ['a refused vote', vote({ source: 30, target: 31, head: rootOf(9) }), { source_epoch: 30, target_epoch: 31 }],
    ['a block', json(block({ slot: 4000 })), { slot: 4000 }],
    ['a randao reveal', json(randaoReveal()), { epoch: 12 }],
    ['an exit', json(voluntaryExit()), { epoch: 12 }],
  ])('%s', async (_case, request, position) => {
    const { line } = await send(request);
    expect(line).toMatchObject({ ...position, signing_root: signingRoot });
  });

  it('the root is the one that a client would compare', async () => {
    const { line } = await send(vote({ source: 40, target: 41 }));
    const stated = { ...attestation({ source: 40, target: 41 }), signingRoot: line['signing_root'] };
    expect((await send(json(stated))).line).toMatchObject({ status: 200, signing_root: line['signing_root'] });
  });

  it('no root of a message that is not for this network, and nothing of one that was not understood', async () => {
    const { line } = await send(json({ ...attestation(), fork_info: forkInfo(rootOf(0x33)) }));
    expect(line).toMatchObject({ source_epoch: 10, target_epoch: 11 });
    expect(line).not.toHaveProperty('signing_root');
    const members = Object.keys((await send({ body: 'not json' })).line);
    for (const name of ['slot', 'epoch', 'source_epoch', 'target_epoch', 'signing_root']) {
      expect(members).not.toContain(name);
    }
  });
});

describe('a fault is the answer to its request and ends nothing else:', () => {
  const fault = (): never => {
    throw new TypeError('TEST fault');
  };
  const caller = { accessor: 'TEST', access: [], management: false } as unknown as Caller;
  const welcome = { authenticate: () => ({ kind: 'caller', caller }), current: () => ({ kind: 'caller', caller }) };

  it.each<[string, Partial<AppParts>]>([
    ['of admission', { authenticator: { ...welcome, authenticate: fault } as unknown as Authenticator }],
    ['of the state', { signingRefusal: fault }],
  ])('%s', async (_case, parts) => {
    const log = recordingLog();
    const authenticator = welcome as unknown as Authenticator;
    const app = await keylessApp({ authenticator, clock: systemClock, log, ...parts });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/api/v1/eth2/sign/${KEY}`;
    const answer = await fetch(url, { method: 'POST', body: Buffer.from('{}'), headers: { connection: 'close' } });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ reason: 'internal_error' });
    expect((await fetch(`http://127.0.0.1:${port}/upcheck`)).status).toBe(200);
    await app.close();
  });
});

describe('a body that takes a while to read', () => {
  it('is not signed for a caller whose source networks were narrowed meanwhile', async () => {
    const from = (cidr: string) => ({
      policies: [{ name: 'all', rules: [{ effect: 'allow' as const }] }],
      anonymousPolicies: [],
      tokens: [{ secret: Buffer.from(TEST_TOKEN), policies: ['all'], boundCidrs: cidrsOf(cidr) }],
    });
    const declared = createStaticAuthenticator(from('127.0.0.0/8'));
    const authenticator: Authenticator = {
      ...declared,
      authenticate: (...given) => {
        const outcome = declared.authenticate(...given);
        declared.replace(from('192.0.2.0/24'));
        return outcome;
      },
    };
    const keys = { find: () => ({ publicKey: KEY }), state: 'ready' } as unknown as KeyStore;
    const app = await keylessApp({ authenticator, clock: systemClock, log: recordingLog(), keys });
    const answer = await app.inject({
      method: 'POST',
      url: `/api/v1/eth2/sign/${KEY}`,
      payload: JSON.stringify(randaoReveal()),
      headers: { authorization: `Bearer ${TEST_TOKEN}`, 'content-type': 'application/json' },
    });
    expect(answer.json()).toMatchObject({ code: 403, reason: 'peer_not_allowed' });
    await app.close();
  });

  it('is not signed for a caller whose token was revoked meanwhile', async () => {
    const access = compilePolicy({ name: 'all', rules: [{ effect: 'allow' }] });
    const caller: Caller = { accessor: 'TEST', access: joinAccess([access]), management: false };
    let looks = 0;
    const authenticator: Authenticator = {
      authenticate: () => ({ kind: 'caller', caller }),
      // the first look is when the body has come in
      current: () => {
        looks += 1;
        return looks === 1 ? { kind: 'caller', caller } : { kind: 'refused', reason: 'invalid_token' };
      },
    };
    const keys = { find: () => ({ publicKey: KEY }), state: 'ready' } as unknown as KeyStore;
    const app = await keylessApp({ authenticator, clock: systemClock, log: recordingLog(), keys });
    const sign = (padding: number) =>
      app.inject({
        method: 'POST',
        url: `/api/v1/eth2/sign/${KEY}`,
        payload: JSON.stringify({ ...(randaoReveal() as object), padding: 'x'.repeat(padding) }),
        headers: { authorization: 'Bearer TEST', 'content-type': 'application/json' },
      });
    expect((await sign(2 * MAX_BODY_READ_AT_ONCE_BYTES)).json()).toMatchObject({ code: 403, reason: 'invalid_token' });
    expect(looks).toBe(2);
    looks = 0;
    await sign(1);
    expect(looks).toBe(1);
    await app.close();
  });
});

function cidrsOf(text: string) {
  const cidrs = parseSafeCidrs([text]);
  if ('refused' in cidrs) throw new Error(cidrs.refused);
  return cidrs;
}
