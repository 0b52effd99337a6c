// How long a token is good, by the clock that is given: expiry, and renewal that never goes beyond the original
// lifetime.

import { describe, expect, it } from 'vitest';
import { createPolicy } from '../../../signer/auth/stateful/policies.ts';
import { renewToken, revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import { openAuthReplica, START } from '../../support/stateful-auth.ts';
import { done, issue, outcomeOf, renewed, replica, root, SIGNER, table } from './replica-set-up.ts';

describe('expiry, by the clock that is given', () => {
  it('a token is good until its last millisecond and not in the next', async () => {
    const { token, expires_at } = await issue({ ttl_seconds: 60 });
    expect(expires_at).toBe(new Date(START + 60_000).toISOString());
    replica.clock.advance(59.999);
    expect(outcomeOf(replica, token)).toBe('caller');
    replica.clock.advance(0.001);
    expect(outcomeOf(replica, token)).toBe('invalid_token');
  });

  it('a token without a lifetime never expires', async () => {
    const { token, expires_at } = await issue();
    replica.clock.advance(1e9);
    expect([expires_at, outcomeOf(replica, token)]).toEqual([null, 'caller']);
  });

  it('an expired management token changes nothing', async () => {
    const manager = await issue({ management: true, policies: [], ttl_seconds: 10 });
    replica.clock.advance(10);
    const outcome = await createPolicy(replica.auth, manager.accessor, { ...SIGNER, name: 'late' });
    expect(outcome).toEqual({ kind: 'refused', reason: 'invalid_token' });
  });

  it('an expired token is listed for a day and deleted by a later creation', async () => {
    const { accessor } = await issue({ ttl_seconds: 10 });
    const isStored = async () => (await table.rows()).some(({ pk }) => pk === `TOKEN#${accessor}`);
    replica.clock.advance(10 + 24 * 3600 - 0.001);
    await issue();
    expect(await isStored()).toBe(true);
    replica.clock.advance(0.001);
    await issue();
    expect(await isStored()).toBe(false);
  });
});

describe('renewal', () => {
  it.each([
    ['nothing is asked: the original lifetime', undefined, 100],
    ['less is asked: what is asked', 30, 30],
    ['the same is asked', 100, 100],
    ['more is asked: the original lifetime, never beyond it', 315_360_000, 100],
  ])('%s, from now', async (_what, asked, expected) => {
    const { accessor, token } = await issue({ ttl_seconds: 100 });
    replica.clock.advance(60);
    expect(await renewed(accessor, asked)).toBe(expected);
    replica.clock.advance(expected - 0.001);
    expect(outcomeOf(replica, token)).toBe('caller');
    replica.clock.advance(0.001);
    expect(outcomeOf(replica, token)).toBe('invalid_token');
  });

  it('a short renewal does not shorten what the next one may ask for', async () => {
    const { accessor } = await issue({ ttl_seconds: 100 });
    expect(await renewed(accessor, 10)).toBe(10);
    expect(await renewed(accessor)).toBe(100);
  });

  it('a token that never expires stays so, and nothing is written for it', async () => {
    const { accessor } = await issue();
    const { revision } = replica.auth;
    expect(await renewed(accessor, 10)).toBeNull();
    expect(replica.auth.revision).toBe(revision);
  });

  it('a management token is renewed as others are', async () => {
    const { accessor } = await issue({ management: true, policies: [], ttl_seconds: 100 });
    replica.clock.advance(60);
    expect(await renewed(accessor)).toBe(100);
  });

  it('an expired and a revoked token are not renewed', async () => {
    const expired = await issue({ ttl_seconds: 10 });
    const revoked = await issue({ ttl_seconds: 100 });
    await done(revokeToken(replica.auth, root, revoked.accessor));
    replica.clock.advance(10);
    expect(await renewToken(replica.auth, expired.accessor, undefined)).toMatchObject({ reason: 'invalid_token' });
    expect(await renewToken(replica.auth, revoked.accessor, undefined)).toMatchObject({ reason: 'invalid_token' });
  });

  it('a renewal that this replica has not seen is not undone by one that it makes', async () => {
    const other = await openAuthReplica(table, { clock: replica.clock });
    const { accessor } = await issue({ ttl_seconds: 100 });
    await other.auth.refresh();
    replica.clock.advance(50);
    await renewed(accessor);
    const again = await done(renewToken(other.auth, accessor, undefined));
    expect(again.expires_at).toBe(new Date(START + 150_000).toISOString());
  });
});
