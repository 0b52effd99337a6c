// Tokens over the Auth API: issued, listed, revoked; and what a token may do with itself.

import { beforeEach, describe, expect, it } from 'vitest';
import { tokenListSchema, tokenRecordSchema } from '../../signer/api/auth.ts';
import { LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS } from '../../signer/http/routes/renewals.ts';
import { START } from '../support/stateful-auth.ts';
import {
  ABSENT,
  call,
  createPolicy,
  createToken,
  LOOKUP,
  RENEW,
  replica,
  root,
  TOKENS,
  table,
} from './auth-api-requests.ts';

describe('tokens', () => {
  beforeEach(() => createPolicy());

  it('a client token is created, shown once, listed without its secret, and revoked', async () => {
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

  it('the root token is listed as such and is the only one', async () => {
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

  it('what is stored and what is listed has no token and no digest of one', async () => {
    const { token } = await createToken();
    const stored = JSON.stringify(await table.rows());
    const listed = JSON.stringify([(await call('GET', TOKENS)).body, replica.log.lines]);
    for (const secret of [token, token.slice(10), root, root.slice(8)]) {
      expect(stored).not.toContain(secret);
      expect(listed).not.toContain(secret);
    }
    expect(listed).not.toMatch(/[0-9a-f]{64}/);
  });

  it('the answer that shows a token is not to be stored', async () => {
    const { status, headers } = await call('POST', TOKENS, { body: { policies: ['signer'] } });
    expect([status, headers['cache-control']]).toEqual([201, 'no-store']);
  });

  it('a management token administers, and the root token may then be revoked', async () => {
    const manager = await createToken({ management: true, description: 'daily' });
    expect(manager).toMatchObject({ kind: 'management', policies: [], expires_at: null, description: 'daily' });
    expect(manager.token).toMatch(/^sr_mgmt_/);
    const rootAccessor = (await call('GET', LOOKUP)).body.accessor;
    expect((await call('DELETE', `${TOKENS}/${rootAccessor}`, { token: manager.token })).status).toBe(204);
    expect(await call('GET', TOKENS)).toMatchObject({ status: 403, body: { reason: 'invalid_token' } });
    const { tokens } = (await call('GET', TOKENS, { token: manager.token })).body;
    expect(tokens).toHaveLength(1);
  });

  it('names and ranges that are given twice are kept once', async () => {
    const created = await createToken({
      policies: ['signer', 'signer'],
      bound_cidrs: ['2001:DB8::/32', '2001:db8::/32'],
    });
    expect(created).toMatchObject({ policies: ['signer'], bound_cidrs: ['2001:db8::/32'] });
  });

  it.each([
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

  it.each([ABSENT, 'acc_', 'anything', '__proto__'])('the accessor %s: 404', async (accessor) => {
    for (const method of ['GET', 'DELETE'] as const) {
      expect(await call(method, `${TOKENS}/${accessor}`)).toMatchObject({ status: 404, body: { reason: 'not_found' } });
    }
  });
});

describe('the token itself', () => {
  beforeEach(() => createPolicy());

  it('any valid token looks itself up, from its networks only', async () => {
    expect(tokenRecordSchema.parse((await call('GET', LOOKUP)).body)).toMatchObject({ kind: 'management', root: true });
    const { token } = await createToken({ policies: ['signer'], bound_cidrs: ['127.1.0.0/16'] });
    expect((await call('GET', LOOKUP, { token, peer: '127.1.2.3' })).status).toBe(200);
    expect(await call('GET', LOOKUP, { token })).toMatchObject({ status: 403, body: { reason: 'peer_not_allowed' } });
    const forwarded = { 'x-forwarded-for': '127.1.2.3' };
    expect((await call('GET', LOOKUP, { token, headers: forwarded })).status).toBe(403);
    expect((await call('POST', RENEW, { token })).status).toBe(403);
  });

  it('a token whose policies allow nothing looks itself up all the same', async () => {
    await createPolicy('nothing', [{ effect: 'deny' }]);
    const { token } = await createToken({ policies: ['nothing'] });
    expect((await call('GET', LOOKUP, { token })).status).toBe(200);
  });

  it.each([
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

  it('a token without a lifetime stays so', async () => {
    const { token } = await createToken();
    expect(await call('POST', RENEW, { token, body: { ttl_seconds: 5 } })).toMatchObject({
      status: 200,
      body: { expires_at: null },
    });
  });

  it('the root token has no lifetime, and a renewal gives it none', async () => {
    expect(await call('POST', RENEW)).toMatchObject({ status: 200, body: { root: true, expires_at: null } });
  });

  it.each([
    ['not JSON', '5', 'invalid_token_request'],
    ['no JSON at all', 'ttl', 'malformed_body'],
    ['a lifetime of nothing', { ttl_seconds: 0 }, 'invalid_token_request'],
    ['an unknown member', { ttl: 5 }, 'invalid_token_request'],
  ])('renewing with %s: 400', async (_what, body, reason) => {
    const { token } = await createToken({ policies: ['signer'], ttl_seconds: 100 });
    expect(await call('POST', RENEW, { token, body })).toMatchObject({ status: 400, body: { reason } });
  });

  it.each([
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

  it('a token may be renewed again after that while', async () => {
    const { token } = await createToken({ policies: ['signer'], ttl_seconds: 100 });
    for (let time = 1; time <= 5; time++) {
      replica.clock.advance(50);
      const { body } = await call('POST', RENEW, { token });
      expect(body).toMatchObject({ expires_at: new Date(START + (50 * time + 100) * 1000).toISOString() });
    }
  });
});
