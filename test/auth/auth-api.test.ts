// The Auth API as its users see it (specification/authorization.md#auth-api): every answer and every refusal, decided
// before the body where the credential decides, each with its audit line, and a token shown exactly once.

import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createdTokenSchema,
  policyListSchema,
  policyRecordSchema,
  tokenListSchema,
  tokenRecordSchema,
} from '../../enclave/api/auth.ts';
import { LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS } from '../../enclave/auth/stateful/renewal-pace.ts';
import { MAX_POLICY_BYTES } from '../../enclave/auth/stateful/state.ts';
import { authApp } from '../support/auth-app.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import {
  type AuthReplica,
  type AuthTable,
  authServerOfFile,
  openAuthReplica,
  START,
} from '../support/stateful-auth.ts';

const POLICIES = '/api/v1/auth/policies';
const TOKENS = '/api/v1/auth/tokens';
const LOOKUP = `${TOKENS}/lookup-self`;
const RENEW = `${TOKENS}/renew-self`;
const RULES = [
  { effect: 'allow', scopes: ['sign', 'public_keys'] },
  { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
];
const ABSENT = `acc_${'0'.repeat(32)}`;

const server = authServerOfFile();
let table: AuthTable;
let replica: AuthReplica;
let app: FastifyInstance;
let root: string;
let port: number;

beforeEach(async () => {
  table = await server.createTable();
  replica = await openAuthReplica(table);
  await serve();
  root = table.rootToken;
});
afterEach(() => app.close());

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  // The tests say what they expect of it.
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any route
  readonly body: any;
}

interface CallOptions {
  /** The root token unless given; undefined: none. */
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** An address of the loopback network to come from. */
  readonly peer?: string;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

function call(method: Method, path: string, options: CallOptions = {}): Promise<Answer> {
  const { body, peer = '127.0.0.1' } = options;
  const token = 'token' in options ? options.token : root;
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  const length = payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) };
  const headers = { ...(token === undefined ? {} : bearer(token)), ...length, ...options.headers };
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = http.request({ host: '127.0.0.1', port, path, method, headers, localAddress: peer, agent: false });
  request.once('error', reject).once('response', (response) => {
    text(response).then((answer) => {
      request.destroy(); // also one that announced more than it sends
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: answer === '' ? undefined : JSON.parse(answer),
      });
    }, reject);
  });
  request.end(payload);
  return promise;
}

async function serve(options: { readonly stateless?: boolean } = {}): Promise<void> {
  app = await authApp(replica, options);
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
}

function keys(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `0x${index.toString(16).padStart(96, '0')}`);
}

function bearer(token: string) {
  return { authorization: `Bearer ${token}` };
}

async function createPolicy(name = 'signer', rules: unknown = RULES): Promise<void> {
  const { status } = await call('POST', POLICIES, { body: { name, rules } });
  expect(status).toBe(201);
}

async function createToken(request: object = { policies: ['signer'] }) {
  const { status, body } = await call('POST', TOKENS, { body: request });
  expect(status).toBe(201);
  return createdTokenSchema.parse(body);
}

/** So many audit lines: a line is written when the answer has left, which the client may see a moment earlier. */
async function auditLines(count: number) {
  await vi.waitFor(() => expect(linesSoFar().length).toBeGreaterThanOrEqual(count), LONGEST_WAIT_MS);
  return linesSoFar();
}

function linesSoFar() {
  return replica.log.lines.filter(({ fields }) => fields['audit'] === true).map(({ fields }) => fields);
}

describe('policies', () => {
  test('are created, shown, listed, replaced and deleted', async () => {
    const created = await call('POST', POLICIES, { body: { name: 'signer', rules: RULES } });
    expect(created.status).toBe(201);
    expect(policyRecordSchema.parse(created.body)).toEqual({
      name: 'signer',
      rules: RULES,
      revision: 2,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
    });
    expect(await call('GET', `${POLICIES}/signer`)).toMatchObject({ status: 200, body: created.body });

    await createPolicy('a-first');
    const list = await call('GET', POLICIES);
    expect(policyListSchema.parse(list.body).policies.map(({ name }) => name)).toEqual(['a-first', 'signer']);

    replica.clock.advance(60);
    const replaced = await call('PUT', `${POLICIES}/signer`, { body: { rules: [{ effect: 'deny' }] } });
    expect(replaced).toMatchObject({
      status: 200,
      body: { ...created.body, rules: [{ effect: 'deny' }], revision: 4, updated_at: '2026-01-01T00:01:00.000Z' },
    });
    expect(await call('DELETE', `${POLICIES}/signer`)).toMatchObject({ status: 204, body: undefined });
    expect(await call('GET', `${POLICIES}/signer`)).toMatchObject({ status: 404, body: { reason: 'not_found' } });
  });

  test('a public key is stored in its one spelling', async () => {
    await createPolicy('keys', [{ effect: 'allow', keys: ['AB'.repeat(48)] }]);
    const { body } = await call('GET', `${POLICIES}/keys`);
    expect(body.rules).toEqual([{ effect: 'allow', keys: [`0x${'ab'.repeat(48)}`] }]);
  });

  test('fee recipients are stored in their one spelling, with the gas limit, and replaced', async () => {
    const rule = { effect: 'allow', scopes: ['sign'], operations: ['VALIDATOR_REGISTRATION'] };
    const written = ['0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'DE709F2102306220921060314715629080E2FB77'];
    const stored = ['0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed', '0xde709f2102306220921060314715629080e2fb77'];
    await createPolicy('payments', [{ ...rule, fee_recipients: written, max_gas_limit: 60_000_000 }]);
    const path = `${POLICIES}/payments`;
    expect((await call('GET', path)).body.rules).toEqual([
      { ...rule, fee_recipients: stored, max_gas_limit: 60_000_000 },
    ]);
    const replaced = await call('PUT', path, { body: { rules: [{ ...rule, fee_recipients: written.slice(1) }] } });
    expect(replaced).toMatchObject({ status: 200, body: { rules: [{ ...rule, fee_recipients: stored.slice(1) }] } });
    const listed = policyListSchema.parse((await call('GET', POLICIES)).body);
    expect(listed.policies[0]?.rules).toEqual([{ ...rule, fee_recipients: stored.slice(1) }]);
  });

  test.each([
    ['GET', undefined],
    ['PUT', { rules: RULES }],
    ['DELETE', undefined],
  ] as const)('%s of one that is not there: 404', async (method, body) => {
    expect(await call(method, `${POLICIES}/absent`, { body })).toMatchObject({
      status: 404,
      body: { reason: 'not_found' },
    });
  });

  test('creating one that is there: 409, and it stays as it is', async () => {
    await createPolicy();
    const again = await call('POST', POLICIES, { body: { name: 'signer', rules: [{ effect: 'allow' }] } });
    expect(again).toMatchObject({ status: 409, body: { reason: 'already_exists' } });
    expect((await call('GET', `${POLICIES}/signer`)).body.rules).toEqual(RULES);
  });

  test('deleting one that a live token is bound to: 409 that names the token; an expired or revoked one is no hindrance', async () => {
    await createPolicy();
    const first = await createToken();
    await createToken({ policies: ['signer'], ttl_seconds: 10 });
    const refused = await call('DELETE', `${POLICIES}/signer`);
    expect(refused).toMatchObject({ status: 409, body: { reason: 'policy_in_use' } });
    expect(refused.body.message).toContain(first.accessor);
    await call('DELETE', `${TOKENS}/${first.accessor}`);
    expect((await call('DELETE', `${POLICIES}/signer`)).status).toBe(409);
    replica.clock.advance(10);
    expect((await call('DELETE', `${POLICIES}/signer`)).status).toBe(204);
  });

  const LONG = 'a'.repeat(65);
  test.each([
    ['no body', undefined, 'malformed_body', 'not JSON'],
    ['not JSON', '{"name"', 'malformed_body', 'not JSON'],
    [
      'a member given twice',
      '{"name":"a","name":"b","rules":[{"effect":"deny"}]}',
      'malformed_body',
      '"name" is given twice',
    ],
    ['an unknown member', { name: 'a', rules: RULES, more: 1 }, 'invalid_policy', 'more'],
    ['no name', { rules: RULES }, 'invalid_policy', 'name: '],
    ['an over-long name', { name: LONG, rules: RULES }, 'invalid_policy', 'name: a policy name is 1 to 64'],
    ['a name with a slash', { name: 'a/b', rules: RULES }, 'invalid_policy', 'name: a policy name is'],
    ['no rules', { name: 'a' }, 'invalid_policy', 'rules: '],
    ['an empty list of rules', { name: 'a', rules: [] }, 'invalid_policy', 'rules: a policy has at least one rule'],
    [
      'an unknown scope',
      { name: 'a', rules: [{ effect: 'allow', scopes: ['sign', 'sing'] }] },
      'invalid_policy',
      'rules[0].scopes[1]: unknown scope "sing"',
    ],
    [
      'an unknown operation',
      { name: 'a', rules: [{ effect: 'allow', operations: ['BLOCK'] }] },
      'invalid_policy',
      'rules[0].operations[0]: unknown operation "BLOCK"',
    ],
    [
      'a malformed public key',
      { name: 'a', rules: [{ effect: 'allow', keys: ['0x12'] }] },
      'invalid_policy',
      'rules[0].keys[0]: not a validator public key',
    ],
    [
      'an address whose checksum is wrong',
      { name: 'a', rules: [{ effect: 'allow', fee_recipients: ['0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed'] }] },
      'invalid_policy',
      'rules[0].fee_recipients[0]: the checksum does not hold',
    ],
    [
      'a gas limit as text',
      { name: 'a', rules: [{ effect: 'allow', max_gas_limit: '60000000' }] },
      'invalid_policy',
      'rules[0].max_gas_limit',
    ],
    [
      'an empty list in a rule',
      { name: 'a', rules: [{ effect: 'allow', keys: [] }] },
      'invalid_policy',
      'rules[0].keys: an empty list matches nothing',
    ],
    [
      'null in place of a list',
      { name: 'a', rules: [{ effect: 'allow', keys: null }] },
      'invalid_policy',
      'rules[0].keys',
    ],
    [
      'an unknown effect',
      { name: 'a', rules: [{ effect: 'Allow' }] },
      'invalid_policy',
      'rules[0].effect: effect is allow or deny',
    ],
  ])('POST with %s: 400 that says what is wrong', async (_what, body, reason, hint) => {
    const answer = await call('POST', POLICIES, { body });
    expect(answer).toMatchObject({ status: 400, body: { code: 400, reason } });
    expect(answer.body.message).toContain(hint);
    expect((await call('GET', POLICIES)).body.policies).toEqual([]);
  });

  test.each([
    ['no rules', {}, 'invalid_policy'],
    ['a name in the body', { name: 'signer', rules: RULES }, 'invalid_policy'],
    ['an unknown scope', { rules: [{ effect: 'allow', scopes: ['all'] }] }, 'invalid_policy'],
    ['no JSON', 'rules', 'malformed_body'],
  ])('PUT with %s: 400', async (_what, body, reason) => {
    await createPolicy();
    expect(await call('PUT', `${POLICIES}/signer`, { body })).toMatchObject({ status: 400, body: { reason } });
    expect((await call('GET', `${POLICIES}/signer`)).body.rules).toEqual(RULES);
  });

  test.each(['a'.repeat(65), 'a'.repeat(300), '.hidden', 'a%2Fb', '%00'])(
    'the name %s in a path: 400',
    async (name) => {
      for (const method of ['GET', 'PUT', 'DELETE'] as const) {
        const body = method === 'PUT' ? { rules: RULES } : undefined;
        const answer = await call(method, `${POLICIES}/${name}`, { body });
        expect(answer).toMatchObject({ status: 400, body: { reason: 'malformed_parameter' } });
      }
    },
  );

  test('a policy that would not fit its row: 400 with what to do; one that just fits is stored whole', async () => {
    const fitting = Math.floor((MAX_POLICY_BYTES - 200) / 101);
    const tooLarge = await call('POST', POLICIES, {
      body: { name: 'large', rules: [{ effect: 'allow', keys: keys(fitting + 3) }] },
    });
    expect(tooLarge).toMatchObject({ status: 400, body: { reason: 'invalid_policy' } });
    expect(tooLarge.body.message).toContain('split it into several policies');
    await createPolicy('large', [{ effect: 'allow', keys: keys(fitting) }]);
    const fresh = await openAuthReplica(table);
    expect(fresh.rejectedRows).toEqual([]);
    expect((await call('GET', `${POLICIES}/large`)).body.rules[0].keys).toHaveLength(fitting);
  });
});

describe('tokens', () => {
  beforeEach(() => createPolicy());

  test('a client token is created, shown once, listed without its secret, and revoked', async () => {
    const request = { policies: ['signer'], ttl_seconds: 3600, bound_cidrs: ['127.0.0.0/8'], description: 'vc-1' };
    const created = await createToken(request);
    const { token, ...record } = created;
    expect(token).toMatch(/^sr_client_[A-Za-z0-9_-]{43}$/);
    expect(record).toEqual({
      accessor: expect.stringMatching(/^acc_[0-9a-f]{32}$/),
      kind: 'client',
      policies: ['signer'],
      bound_cidrs: ['127.0.0.0/8'],
      description: 'vc-1',
      created_at: new Date(START).toISOString(),
      expires_at: new Date(START + 3_600_000).toISOString(),
      root: false,
      revision: 3,
    });
    const path = `${TOKENS}/${record.accessor}`;
    expect(await call('GET', path)).toMatchObject({ status: 200, body: record });
    const list = await call('GET', TOKENS);
    expect(tokenListSchema.parse(list.body).tokens).toContainEqual(record);
    expect(await call('GET', LOOKUP, { token })).toMatchObject({ status: 200, body: record });

    expect(await call('DELETE', path)).toMatchObject({ status: 204, body: undefined });
    expect(await call('GET', LOOKUP, { token })).toMatchObject({ status: 403, body: { reason: 'invalid_token' } });
    expect(await call('GET', path)).toMatchObject({ status: 404 });
    expect(await call('DELETE', path)).toMatchObject({ status: 404, body: { reason: 'not_found' } });
  });

  test('the root token is listed as such and is the only one', async () => {
    await createToken({ management: true });
    const { tokens } = tokenListSchema.parse((await call('GET', TOKENS)).body);
    expect(tokens.map(({ kind, root: isRoot }) => [kind, isRoot])).toEqual(
      expect.arrayContaining([
        ['management', true],
        ['management', false],
      ]),
    );
    expect(tokens.filter(({ root: isRoot }) => isRoot)).toHaveLength(1);
  });

  test('what is stored and what is listed has no token and no digest of one', async () => {
    const { token } = await createToken();
    const stored = JSON.stringify(await table.rows());
    const listed = JSON.stringify([(await call('GET', TOKENS)).body, replica.log.lines]);
    for (const secret of [token, token.slice(10), root, root.slice(8)]) {
      expect(stored).not.toContain(secret);
      expect(listed).not.toContain(secret);
    }
    expect(listed).not.toMatch(/[0-9a-f]{64}/);
  });

  test('the answer that shows a token is not to be stored', async () => {
    const { status, headers } = await call('POST', TOKENS, { body: { policies: ['signer'] } });
    expect([status, headers['cache-control']]).toEqual([201, 'no-store']);
  });

  test('a management token administers, and the root token may then be revoked', async () => {
    const manager = await createToken({ management: true, description: 'daily' });
    expect(manager).toMatchObject({ kind: 'management', policies: [], expires_at: null, description: 'daily' });
    expect(manager.token).toMatch(/^sr_mgmt_/);
    const rootAccessor = (await call('GET', LOOKUP)).body.accessor;
    expect((await call('DELETE', `${TOKENS}/${rootAccessor}`, { token: manager.token })).status).toBe(204);
    expect(await call('GET', TOKENS)).toMatchObject({ status: 403, body: { reason: 'invalid_token' } });
    const { tokens } = (await call('GET', TOKENS, { token: manager.token })).body;
    expect(tokens).toHaveLength(1);
  });

  test('names and ranges that are given twice are kept once', async () => {
    const created = await createToken({
      policies: ['signer', 'signer'],
      bound_cidrs: ['2001:DB8::/32', '2001:db8::/32'],
    });
    expect(created).toMatchObject({ policies: ['signer'], bound_cidrs: ['2001:db8::/32'] });
  });

  test.each([
    ['no body', undefined, 'malformed_body', 'not JSON'],
    ['not JSON', 'policies=signer', 'malformed_body', 'not JSON'],
    ['an unknown member', { policies: ['signer'], ttl: 5 }, 'invalid_token_request', 'ttl'],
    ['no policies', {}, 'invalid_token_request', 'policies: a client token is bound to at least one policy'],
    [
      'a policy that is not there',
      { policies: ['signer', 'absent'] },
      'invalid_token_request',
      'policies: there is no policy absent',
    ],
    ['a malformed policy name', { policies: ['a/b'] }, 'invalid_token_request', 'policies[0]: '],
    ['too many policies', { policies: Array(65).fill('signer') }, 'invalid_token_request', 'policies: '],
    ['a lifetime of nothing', { policies: ['signer'], ttl_seconds: 0 }, 'invalid_token_request', 'ttl_seconds: '],
    [
      'a lifetime of more than ten years',
      { policies: ['signer'], ttl_seconds: 315_360_001 },
      'invalid_token_request',
      'ttl_seconds: ',
    ],
    ['a fraction of a second', { policies: ['signer'], ttl_seconds: 1.5 }, 'invalid_token_request', 'ttl_seconds: '],
    ['a lifetime as text', { policies: ['signer'], ttl_seconds: '60' }, 'invalid_token_request', 'ttl_seconds: '],
    ['null as a lifetime', { policies: ['signer'], ttl_seconds: null }, 'invalid_token_request', 'ttl_seconds: '],
    [
      'the whole of IPv4',
      { policies: ['signer'], bound_cidrs: ['0.0.0.0/0'] },
      'invalid_token_request',
      'bound_cidrs: 0.0.0.0/0 is unsafe',
    ],
    [
      'the whole of IPv6',
      { policies: ['signer'], bound_cidrs: ['::/0'] },
      'invalid_token_request',
      'bound_cidrs: ::/0 is unsafe',
    ],
    [
      'too wide a range among others',
      { policies: ['signer'], bound_cidrs: ['10.0.0.0/8', '12.0.0.0/7'] },
      'invalid_token_request',
      '12.0.0.0/7 is unsafe',
    ],
    [
      'host bits in a range',
      { policies: ['signer'], bound_cidrs: ['10.0.0.1/8'] },
      'invalid_token_request',
      '"10.0.0.1/8": host bits are set',
    ],
    [
      'an address in place of a range',
      { policies: ['signer'], bound_cidrs: ['10.0.0.1'] },
      'invalid_token_request',
      '"10.0.0.1": a range is written',
    ],
    [
      'ranges for a management token',
      { management: true, bound_cidrs: ['10.0.0.0/8'] },
      'invalid_token_request',
      'bound_cidrs: a management token is never bound',
    ],
    [
      'too long a description',
      { policies: ['signer'], description: 'x'.repeat(257) },
      'invalid_token_request',
      'description: ',
    ],
  ])('POST with %s: 400 that says what is wrong, and no token is made', async (_what, body, reason, hint) => {
    const answer = await call('POST', TOKENS, { body });
    expect(answer).toMatchObject({ status: 400, body: { code: 400, reason } });
    expect(answer.body.message).toContain(hint);
    expect((await call('GET', TOKENS)).body.tokens).toHaveLength(1);
  });

  test.each([ABSENT, 'acc_', 'anything', '__proto__'])('the accessor %s: 404', async (accessor) => {
    for (const method of ['GET', 'DELETE'] as const) {
      expect(await call(method, `${TOKENS}/${accessor}`)).toMatchObject({ status: 404, body: { reason: 'not_found' } });
    }
  });
});

describe('the token itself', () => {
  beforeEach(() => createPolicy());

  test('any valid token looks itself up, from its networks only', async () => {
    expect(tokenRecordSchema.parse((await call('GET', LOOKUP)).body)).toMatchObject({ kind: 'management', root: true });
    const { token } = await createToken({ policies: ['signer'], bound_cidrs: ['127.1.0.0/16'] });
    expect((await call('GET', LOOKUP, { token, peer: '127.1.2.3' })).status).toBe(200);
    expect(await call('GET', LOOKUP, { token })).toMatchObject({ status: 403, body: { reason: 'peer_not_allowed' } });
    const forwarded = { 'x-forwarded-for': '127.1.2.3' };
    expect((await call('GET', LOOKUP, { token, headers: forwarded })).status).toBe(403);
    expect((await call('POST', RENEW, { token })).status).toBe(403);
  });

  test('a token whose policies allow nothing looks itself up all the same', async () => {
    await createPolicy('nothing', [{ effect: 'deny' }]);
    const { token } = await createToken({ policies: ['nothing'] });
    expect((await call('GET', LOOKUP, { token })).status).toBe(200);
  });

  test.each([
    ['no body', undefined, 100],
    ['an empty object', {}, 100],
    ['less', { ttl_seconds: 30 }, 30],
    ['more than the original lifetime', { ttl_seconds: 3000 }, 100],
  ])('a client token renews itself with %s', async (_what, body, lifetimeSeconds) => {
    const { token, accessor } = await createToken({ policies: ['signer'], ttl_seconds: 100 });
    replica.clock.advance(50);
    const { status, body: record } = await call('POST', RENEW, { token, body });
    expect(status).toBe(200);
    expect(tokenRecordSchema.parse(record)).toMatchObject({
      accessor,
      expires_at: new Date(START + (50 + lifetimeSeconds) * 1000).toISOString(),
      created_at: new Date(START).toISOString(),
    });
    expect(record).not.toHaveProperty('token');
  });

  test('a token without a lifetime stays so', async () => {
    const { token } = await createToken();
    expect(await call('POST', RENEW, { token, body: { ttl_seconds: 5 } })).toMatchObject({
      status: 200,
      body: { expires_at: null },
    });
  });

  test('a management token does not renew itself: 403', async () => {
    expect(await call('POST', RENEW)).toMatchObject({ status: 403, body: { reason: 'denied' } });
  });

  test.each([
    ['not JSON', '5', 'invalid_token_request'],
    ['no JSON at all', 'ttl', 'malformed_body'],
    ['a lifetime of nothing', { ttl_seconds: 0 }, 'invalid_token_request'],
    ['an unknown member', { ttl: 5 }, 'invalid_token_request'],
  ])('renewing with %s: 400', async (_what, body, reason) => {
    const { token } = await createToken({ policies: ['signer'], ttl_seconds: 100 });
    expect(await call('POST', RENEW, { token, body })).toMatchObject({ status: 400, body: { reason } });
  });

  test.each([
    ['a long lifetime', 3600, undefined, LONGEST_PAUSE_SECONDS],
    ['a short lifetime', 30, undefined, 15],
    ['a short lifetime that it asked for', 3600, 30, 15],
    ['a lifetime of a moment that it asked for', 3600, 1, SHORTEST_PAUSE_SECONDS],
  ])(
    'a token with %s is renewed once for a while: until then its record is answered as it is, and nothing is written',
    async (_what, lifetimeSeconds, asked, pauseSeconds) => {
      const { token } = await createToken({ policies: ['signer'], ttl_seconds: lifetimeSeconds });
      const other = await createToken({ policies: ['signer'], ttl_seconds: lifetimeSeconds });
      const body = asked === undefined ? {} : { ttl_seconds: asked };
      const renewed = await call('POST', RENEW, { token, body });
      expect(renewed.status).toBe(200);
      const { revision } = replica.auth;
      replica.clock.advance(Math.min(pauseSeconds, asked ?? lifetimeSeconds) - 0.001);
      for (let time = 0; time < 50; time++) {
        expect(await call('POST', RENEW, { token, body })).toEqual({ ...renewed, headers: expect.anything() });
      }
      expect(replica.auth.revision).toBe(revision);
      expect((await call('POST', RENEW, { token: other.token, body })).status).toBe(200);
      expect(replica.auth.revision).toBe(revision + 1);
    },
  );

  test('a token may be renewed again after that while', async () => {
    const { token } = await createToken({ policies: ['signer'], ttl_seconds: 100 });
    for (let time = 1; time <= 5; time++) {
      replica.clock.advance(50);
      const { body } = await call('POST', RENEW, { token });
      expect(body).toMatchObject({ expires_at: new Date(START + (50 * time + 100) * 1000).toISOString() });
    }
  });
});

const MANAGEMENT_ROUTES = [
  ['GET', POLICIES],
  ['POST', POLICIES],
  ['GET', `${POLICIES}/signer`],
  ['PUT', `${POLICIES}/signer`],
  ['DELETE', `${POLICIES}/signer`],
  ['GET', TOKENS],
  ['POST', TOKENS],
  ['GET', `${TOKENS}/${ABSENT}`],
  ['DELETE', `${TOKENS}/${ABSENT}`],
] as const;
const OWN_ROUTES = [
  ['GET', LOOKUP],
  ['POST', RENEW],
] as const;

describe.each([...MANAGEMENT_ROUTES, ...OWN_ROUTES])('%s %s', (method, url) => {
  /** Larger than anything that is read, and not JSON: whoever refuses it has not looked. */
  const body = 'x'.repeat(100);

  test('refuses who has no valid token before the body is read', async () => {
    const unknown = `sr_mgmt_${'A'.repeat(43)}`;
    const refusals: readonly (readonly [object, number, string])[] = [
      [{ token: undefined }, 401, 'missing_credentials'],
      [{ token: undefined, headers: { authorization: 'Digest x' } }, 401, 'malformed_credentials'],
      [{ token: unknown }, 403, 'invalid_token'],
    ];
    for (const [options, status, reason] of refusals) {
      expect(await call(method, url, { ...options, body })).toMatchObject({ status, body: { code: status, reason } });
    }
  });

  test('answers 401 once it is sealed, to the root token too', async () => {
    replica.auth.seal();
    expect(await call(method, url, { body })).toMatchObject({ status: 401, body: { reason: 'auth_sealed' } });
  });

  test('refuses a body that is too large: 413', async () => {
    const headers = { 'content-length': String(2_097_153) };
    const answer = await call(method, url, { headers, body: method === 'GET' ? undefined : body });
    expect(answer).toMatchObject({ status: 413, body: { reason: 'body_too_large' } });
  });

  test('leaves one audit line that says who, what and how it ended, and no token', async () => {
    await call(method, url, { body: method === 'GET' ? undefined : body });
    const lines = await auditLines(1);
    expect(lines).toHaveLength(1);
    const accessor = replica.auth.snapshot.manifest.root?.replace('TOKEN#', '');
    expect(lines[0]).toMatchObject({ accessor, client_ip: '127.0.0.1', method, request_id: expect.any(String) });
    expect(lines[0]).toHaveProperty('duration_ms');
    expect(lines[0]?.['outcome']).toBe(lines[0]?.['reason'] === undefined ? 'ok' : 'refused');
    expect(JSON.stringify(replica.log.lines)).not.toContain(root);
  });
});

describe.each(MANAGEMENT_ROUTES)('%s %s', (method, url) => {
  test('is for management tokens: a client token gets 403 before the body is read, whatever its policies', async () => {
    await createPolicy('everything', [{ effect: 'allow' }]);
    const { token, accessor } = await createToken({ policies: ['everything'] });
    const answer = await call(method, url, { token, body: 'not JSON' });
    expect(answer).toMatchObject({ status: 403, body: { reason: 'denied' } });
    expect((await auditLines(3)).at(-1)).toMatchObject({ accessor, outcome: 'refused', reason: 'denied', status: 403 });
  });
});

describe('audit', () => {
  test('administration names its subject', async () => {
    await createPolicy();
    const { accessor, token } = await createToken();
    await call('POST', RENEW, { token });
    await call('DELETE', `${TOKENS}/${accessor}`);
    await call('DELETE', `${POLICIES}/signer`);
    expect(
      (await auditLines(5)).map(({ method, route, subject, outcome }) => [method, route, subject, outcome]),
    ).toEqual([
      ['POST', POLICIES, 'signer', 'ok'],
      ['POST', TOKENS, accessor, 'ok'],
      ['POST', RENEW, undefined, 'ok'],
      ['DELETE', `${TOKENS}/:accessor`, accessor, 'ok'],
      ['DELETE', `${POLICIES}/:name`, 'signer', 'ok'],
    ]);
  });
});

describe('other routes', () => {
  test('a management token without policies is admitted to no scope', async () => {
    expect(await call('GET', '/api/v1/eth2/publicKeys')).toMatchObject({ status: 403, body: { reason: 'denied' } });
  });

  test('a client token is admitted to the scopes of its policies, and after a change to those of the new rules', async () => {
    await createPolicy();
    const { token } = await createToken();
    const publicKeys = () => call('GET', '/api/v1/eth2/publicKeys', { token });
    expect(await publicKeys()).toMatchObject({ body: { reason: 'starting' } }); // admitted, and the keys are not loaded
    await call('PUT', `${POLICIES}/signer`, { body: { rules: [{ effect: 'allow', scopes: ['sign'] }] } });
    expect(await publicKeys()).toMatchObject({ status: 403, body: { reason: 'denied' } });
  });

  test('the OpenAPI document describes all of the Auth API', async () => {
    const { paths } = (await call('GET', '/api/openapi.json')).body;
    for (const [method, url] of [...MANAGEMENT_ROUTES, ...OWN_ROUTES]) {
      const path = url.replace(/signer$/, '{name}').replace(ABSENT, '{accessor}');
      expect(paths[path]?.[method.toLowerCase()]).toMatchObject({
        security: [{ bearer: [] }, { basic: [] }],
        responses: { 401: expect.anything(), 403: expect.anything() },
      });
    }
    expect(paths[POLICIES].post.responses).toHaveProperty('201');
    expect(paths[`${POLICIES}/{name}`].delete.responses).toHaveProperty('204');
  });
});

describe('without the state table', () => {
  test('there is no Auth API', async () => {
    await app.close();
    await serve({ stateless: true });
    for (const [method, url] of [...MANAGEMENT_ROUTES, ...OWN_ROUTES]) {
      expect(await call(method, url)).toMatchObject({ status: 404, body: { reason: 'not_found' } });
    }
  });
});
