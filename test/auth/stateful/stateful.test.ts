// The stateful mode: who is let in, with what access, and from where.

import { describe, expect, it } from 'vitest';
import { createPolicy } from '../../../signer/auth/stateful/policies.ts';
import { openAuthReplica } from '../../support/stateful-auth.ts';
import { credential, done, issue, maySign, outcomeOf, replica, root, table } from './replica-set-up.ts';

describe('authentication', () => {
  it('the root token is a management token without any access of its own', () => {
    const outcome = replica.authenticate(table.rootToken);
    expect(outcome).toMatchObject({ kind: 'caller', caller: { management: true, access: { allows: [], denies: [] } } });
  });

  it('no token and a malformed header are 401, an unknown token is 403', () => {
    const { auth } = replica;
    expect(auth.authenticate({ kind: 'none' }, '127.0.0.1')).toEqual({
      kind: 'refused',
      reason: 'missing_credentials',
    });
    expect(auth.authenticate({ kind: 'malformed' }, '127.0.0.1')).toEqual({
      kind: 'refused',
      reason: 'malformed_credentials',
    });
    expect(outcomeOf(replica, `sr_client_${'A'.repeat(43)}`)).toBe('invalid_token');
    expect(outcomeOf(replica, '')).toBe('invalid_token');
  });

  it('every part of a token counts', async () => {
    const { token } = await issue();
    expect(maySign(replica, token)).toBe(true);
    for (const wrong of [token.slice(0, -1), `${token}A`, token.toUpperCase(), token.replace('client', 'mgmt')]) {
      expect(outcomeOf(replica, wrong)).toBe('invalid_token');
    }
  });

  it('the bytes of a presented token are wiped, whatever the outcome', async () => {
    const { token } = await issue();
    for (const text of [token, 'unknown']) {
      const presented = Buffer.from(text);
      replica.auth.authenticate({ kind: 'token', token: presented }, '127.0.0.1');
      expect(presented.every((byte) => byte === 0)).toBe(true);
    }
  });

  it('a client token has the access of its policies and is no management token', async () => {
    const { token } = await issue();
    expect(replica.authenticate(token)).toMatchObject({ kind: 'caller', caller: { management: false } });
    expect(maySign(replica, token)).toBe(true);
  });

  it('a management token has the access of its policies too, if it has any', async () => {
    const plain = await issue({ management: true, policies: [] });
    const bound = await issue({ management: true });
    expect([maySign(replica, plain.token), maySign(replica, bound.token)]).toEqual([false, true]);
  });

  it('a deny rule in one policy beats the allow in another of the same token', async () => {
    await done(createPolicy(replica.auth, root, { name: 'frozen', rules: [{ effect: 'deny', scopes: ['sign'] }] }));
    const { token } = await issue({ policies: ['signer', 'frozen'] });
    expect(maySign(replica, token)).toBe(false);
  });

  it('before the state is loaded, nobody is let in', async () => {
    const empty = await openAuthReplica(table, { refreshed: false });
    expect(outcomeOf(empty, table.rootToken)).toBe('auth_sealed');
    expect(empty.auth.revision).toBe(0);
  });
});

describe('source networks', () => {
  it('a bound token works from inside its ranges only, IPv4-mapped peers count as IPv4', async () => {
    const { token } = await issue({ bound_cidrs: ['10.1.0.0/16', '2001:db8::/32'] });
    for (const peer of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1']) {
      expect(outcomeOf(replica, token, peer)).toBe('caller');
    }
    for (const peer of ['10.2.0.1', '::ffff:10.2.0.1', '2001:db9::1', '127.0.0.1', 'unix']) {
      expect(outcomeOf(replica, token, peer)).toBe('peer_not_allowed');
    }
  });

  it('without a peer address a bound token is refused, an unbound one is not', async () => {
    const bound = await issue({ bound_cidrs: ['10.1.0.0/16'] });
    expect(replica.auth.authenticate(credential(bound.token), undefined)).toMatchObject({ reason: 'peer_not_allowed' });
    expect(replica.auth.authenticate(credential(table.rootToken), undefined)).toMatchObject({ kind: 'caller' });
  });

  it('an expired token from the wrong network is told that it is invalid, no more', async () => {
    const { token } = await issue({ bound_cidrs: ['10.1.0.0/16'], ttl_seconds: 1 });
    replica.clock.advance(1);
    expect(outcomeOf(replica, token, '192.0.2.1')).toBe('invalid_token');
  });
});
