// Policies over the Auth API: what is stored of them, and what is refused with what to do.

import { describe, expect, it } from 'vitest';
import { policyListSchema, policyRecordSchema } from '../../signer/api/auth.ts';
import { MAX_POLICY_BYTES } from '../../signer/auth/stateful/state.ts';
import { openAuthReplica } from '../support/stateful-auth.ts';
import { call, createPolicy, createToken, keys, POLICIES, RULES, replica, TOKENS, table } from './auth-api-requests.ts';

describe('policies', () => {
  it('are created, shown, listed, replaced and deleted', async () => {
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

  it('a public key is stored in its one spelling', async () => {
    await createPolicy('keys', [{ effect: 'allow', keys: ['AB'.repeat(48)] }]);
    const { body } = await call('GET', `${POLICIES}/keys`);
    expect(body.rules).toEqual([{ effect: 'allow', keys: [`0x${'ab'.repeat(48)}`] }]);
  });

  it('fee recipients are stored in their one spelling, with the gas limit, and replaced', async () => {
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

  it.each([
    ['GET', undefined],
    ['PUT', { rules: RULES }],
    ['DELETE', undefined],
  ] as const)('%s of one that is not there: 404', async (method, body) => {
    expect(await call(method, `${POLICIES}/absent`, { body })).toMatchObject({
      status: 404,
      body: { reason: 'not_found' },
    });
  });

  it('creating one that is there: 409, and it stays as it is', async () => {
    await createPolicy();
    const again = await call('POST', POLICIES, { body: { name: 'signer', rules: [{ effect: 'allow' }] } });
    expect(again).toMatchObject({ status: 409, body: { reason: 'already_exists' } });
    expect((await call('GET', `${POLICIES}/signer`)).body.rules).toEqual(RULES);
  });

  it('deleting one that a live token is bound to: 409 that names the token; an expired or revoked one is no hindrance', async () => {
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
  it.each([
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

  it.each([
    ['no rules', {}, 'invalid_policy'],
    ['a name in the body', { name: 'signer', rules: RULES }, 'invalid_policy'],
    ['an unknown scope', { rules: [{ effect: 'allow', scopes: ['all'] }] }, 'invalid_policy'],
    ['no JSON', 'rules', 'malformed_body'],
  ])('PUT with %s: 400', async (_what, body, reason) => {
    await createPolicy();
    expect(await call('PUT', `${POLICIES}/signer`, { body })).toMatchObject({ status: 400, body: { reason } });
    expect((await call('GET', `${POLICIES}/signer`)).body.rules).toEqual(RULES);
  });

  it.each(['a'.repeat(65), 'a'.repeat(300), '.hidden', 'a%2Fb', '%00'])('the name %s in a path: 400', async (name) => {
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      const body = method === 'PUT' ? { rules: RULES } : undefined;
      const answer = await call(method, `${POLICIES}/${name}`, { body });
      expect(answer).toMatchObject({ status: 400, body: { reason: 'malformed_parameter' } });
    }
  });

  it('a policy that would not fit its row: 400 with what to do; one that just fits is stored whole', async () => {
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
