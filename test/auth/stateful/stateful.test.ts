// The stateful mode: who is let in, for how long, from where, and when a change counts, on this replica and on others.

import { beforeEach, describe, expect, test } from 'vitest';
import type { Policy, TokenRequest } from '../../../enclave/api/policy.ts';
import { evaluate } from '../../../enclave/auth/evaluate.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../../enclave/auth/stateful/policies.ts';
import { LOOK_AGAIN_SECONDS, StatefulAuthenticator } from '../../../enclave/auth/stateful/stateful.ts';
import { issueToken, renewToken, revokeToken } from '../../../enclave/auth/stateful/tokens.ts';
import {
  type AuthReplica,
  type AuthTable,
  authServerOfFile,
  openAuthReplica,
  START,
} from '../../support/stateful-auth.ts';

const SIGNER: Policy = { name: 'signer', rules: [{ effect: 'allow', scopes: ['sign'] }] };
/** The third: two are those of the first load. */
const SLOW_READ = 3;
const SIGN = { scope: 'sign', publicKey: `0x${'11'.repeat(48)}`, operation: 'ATTESTATION' } as const;

const server = authServerOfFile();
let table: AuthTable;
let replica: AuthReplica;
let root: string;

beforeEach(async () => {
  table = await server.createTable();
  replica = await openAuthReplica(table);
  root = accessorOf(replica, table.rootToken);
  await done(createPolicy(replica.auth, root, SIGNER));
});

async function done<Answer>(
  outcome: Promise<{ kind: 'done'; answer: Answer } | { kind: 'refused'; reason: string }>,
): Promise<Answer> {
  const result = await outcome;
  if (result.kind === 'refused') throw new Error(`refused: ${result.reason}`);
  return result.answer;
}

function issue(request: Partial<TokenRequest> = {}, { auth } = replica) {
  return done(
    issueToken(auth, root, { policies: ['signer'], bound_cidrs: [], management: false, ...request } as TokenRequest),
  );
}

function outcomeOf({ authenticate }: AuthReplica, token: string, peer?: string): string {
  const outcome = authenticate(token, peer);
  return outcome.kind === 'caller' ? 'caller' : outcome.reason;
}

function accessorOf({ authenticate }: AuthReplica, token: string): string {
  const outcome = authenticate(token);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return outcome.caller.accessor;
}

/** Whether the token lets somebody in and allows to sign. */
function maySign({ authenticate }: AuthReplica, token: string): boolean {
  const outcome = authenticate(token);
  return outcome.kind === 'caller' && evaluate(outcome.caller.access, SIGN).allowed;
}

async function renewed(accessor: string, ttlSeconds?: number): Promise<number | null> {
  const { expires_at } = await done(renewToken(replica.auth, accessor, ttlSeconds));
  return expires_at === null ? null : (Date.parse(expires_at) - replica.clock.now()) / 1000;
}

function credential(token: string) {
  return { kind: 'token', token: Buffer.from(token) } as const;
}

describe('authentication', () => {
  test('the root token is a management token without any access of its own', () => {
    const outcome = replica.authenticate(table.rootToken);
    expect(outcome).toMatchObject({ kind: 'caller', caller: { management: true, access: { allows: [], denies: [] } } });
  });

  test('no token and a malformed header are 401, an unknown token is 403', () => {
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

  test('every part of a token counts', async () => {
    const { token } = await issue();
    expect(maySign(replica, token)).toBe(true);
    for (const wrong of [token.slice(0, -1), `${token}A`, token.toUpperCase(), token.replace('client', 'mgmt')]) {
      expect(outcomeOf(replica, wrong)).toBe('invalid_token');
    }
  });

  test('the bytes of a presented token are wiped, whatever the outcome', async () => {
    const { token } = await issue();
    for (const text of [token, 'unknown']) {
      const presented = Buffer.from(text);
      replica.auth.authenticate({ kind: 'token', token: presented }, '127.0.0.1');
      expect(presented.every((byte) => byte === 0)).toBe(true);
    }
  });

  test('a client token has the access of its policies and is no management token', async () => {
    const { token } = await issue();
    expect(replica.authenticate(token)).toMatchObject({ kind: 'caller', caller: { management: false } });
    expect(maySign(replica, token)).toBe(true);
  });

  test('a management token has the access of its policies too, if it has any', async () => {
    const plain = await issue({ management: true, policies: [] });
    const bound = await issue({ management: true });
    expect([maySign(replica, plain.token), maySign(replica, bound.token)]).toEqual([false, true]);
  });

  test('a deny rule in one policy beats the allow in another of the same token', async () => {
    await done(createPolicy(replica.auth, root, { name: 'frozen', rules: [{ effect: 'deny', scopes: ['sign'] }] }));
    const { token } = await issue({ policies: ['signer', 'frozen'] });
    expect(maySign(replica, token)).toBe(false);
  });

  test('before the state is loaded, nobody is let in', async () => {
    const empty = await openAuthReplica(table, { refreshed: false });
    expect(outcomeOf(empty, table.rootToken)).toBe('auth_sealed');
    expect(empty.auth.revision).toBe(0);
  });
});

describe('expiry, by the clock that is given', () => {
  test('a token is good until its last millisecond and not in the next', async () => {
    const { token, expires_at } = await issue({ ttl_seconds: 60 });
    expect(expires_at).toBe(new Date(START + 60_000).toISOString());
    replica.clock.advance(59.999);
    expect(outcomeOf(replica, token)).toBe('caller');
    replica.clock.advance(0.001);
    expect(outcomeOf(replica, token)).toBe('invalid_token');
  });

  test('a token without a lifetime never expires', async () => {
    const { token, expires_at } = await issue();
    replica.clock.advance(1e9);
    expect([expires_at, outcomeOf(replica, token)]).toEqual([null, 'caller']);
  });

  test('an expired management token changes nothing', async () => {
    const manager = await issue({ management: true, policies: [], ttl_seconds: 10 });
    replica.clock.advance(10);
    const outcome = await createPolicy(replica.auth, manager.accessor, { ...SIGNER, name: 'late' });
    expect(outcome).toEqual({ kind: 'refused', reason: 'invalid_token' });
  });

  test('an expired token is listed for a day and deleted by a later creation', async () => {
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
  test.each([
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

  test('a short renewal does not shorten what the next one may ask for', async () => {
    const { accessor } = await issue({ ttl_seconds: 100 });
    expect(await renewed(accessor, 10)).toBe(10);
    expect(await renewed(accessor)).toBe(100);
  });

  test('a token that never expires stays so, and nothing is written for it', async () => {
    const { accessor } = await issue();
    const { revision } = replica.auth;
    expect(await renewed(accessor, 10)).toBeNull();
    expect(replica.auth.revision).toBe(revision);
  });

  test('an expired, a revoked and a management token are not renewed', async () => {
    const expired = await issue({ ttl_seconds: 10 });
    const revoked = await issue({ ttl_seconds: 100 });
    const manager = await issue({ management: true, policies: [], ttl_seconds: 100 });
    await done(revokeToken(replica.auth, root, revoked.accessor));
    replica.clock.advance(10);
    expect(await renewToken(replica.auth, expired.accessor, undefined)).toMatchObject({ reason: 'invalid_token' });
    expect(await renewToken(replica.auth, revoked.accessor, undefined)).toMatchObject({ reason: 'invalid_token' });
    expect(await renewToken(replica.auth, manager.accessor, undefined)).toMatchObject({ reason: 'denied' });
  });

  test('a renewal that this replica has not seen is not undone by one that it makes', async () => {
    const other = await openAuthReplica(table, { clock: replica.clock });
    const { accessor } = await issue({ ttl_seconds: 100 });
    await other.auth.refresh();
    replica.clock.advance(50);
    await renewed(accessor);
    const again = await done(renewToken(other.auth, accessor, undefined));
    expect(again.expires_at).toBe(new Date(START + 150_000).toISOString());
  });
});

describe('source networks', () => {
  test('a bound token works from inside its ranges only, IPv4-mapped peers count as IPv4', async () => {
    const { token } = await issue({ bound_cidrs: ['10.1.0.0/16', '2001:db8::/32'] });
    for (const peer of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1']) {
      expect(outcomeOf(replica, token, peer)).toBe('caller');
    }
    for (const peer of ['10.2.0.1', '::ffff:10.2.0.1', '2001:db9::1', '127.0.0.1', 'unix']) {
      expect(outcomeOf(replica, token, peer)).toBe('peer_not_allowed');
    }
  });

  test('without a peer address a bound token is refused, an unbound one is not', async () => {
    const bound = await issue({ bound_cidrs: ['10.1.0.0/16'] });
    expect(replica.auth.authenticate(credential(bound.token), undefined)).toMatchObject({ reason: 'peer_not_allowed' });
    expect(replica.auth.authenticate(credential(table.rootToken), undefined)).toMatchObject({ kind: 'caller' });
  });

  test('an expired token from the wrong network is told that it is invalid, no more', async () => {
    const { token } = await issue({ bound_cidrs: ['10.1.0.0/16'], ttl_seconds: 1 });
    replica.clock.advance(1);
    expect(outcomeOf(replica, token, '192.0.2.1')).toBe('invalid_token');
  });
});

describe('two replicas', () => {
  let other: AuthReplica;
  beforeEach(async () => {
    other = await openAuthReplica(table, { clock: replica.clock });
  });

  test('a change counts at once where it was made and after a refresh elsewhere', async () => {
    const { token, accessor } = await issue();
    expect([maySign(replica, token), maySign(other, token)]).toEqual([true, false]);
    await other.auth.refresh();
    expect(maySign(other, token)).toBe(true);

    await done(replacePolicy(replica.auth, root, { ...SIGNER, rules: [{ effect: 'allow', scopes: ['list_keys'] }] }));
    expect([maySign(replica, token), maySign(other, token)]).toEqual([false, true]);
    await other.auth.refresh();
    expect(maySign(other, token)).toBe(false);

    await done(revokeToken(other.auth, root, accessor));
    expect([outcomeOf(replica, token), outcomeOf(other, token)]).toEqual(['caller', 'invalid_token']);
    await replica.auth.refresh();
    expect(outcomeOf(replica, token)).toBe('invalid_token');
  });

  test('a refresh that was asked for after a change shows it, also while one is under way that read the head before', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: headRead, resolve: tellHeadRead } = Promise.withResolvers<void>();
    let reads = 0;
    const readTogether: AuthTable['state']['readTogether'] = async (pks) => {
      const view = await table.state.readTogether(pks);
      reads += 1;
      if (reads === SLOW_READ) {
        tellHeadRead();
        await released;
      }
      return view;
    };
    const slow = await openAuthReplica(table, { state: { ...table.state, readTogether } });
    const earlier = slow.auth.refresh();
    await headRead;
    const { token } = await issue();
    const later = [slow.auth.refresh(), slow.auth.refresh()];
    release();
    await earlier;
    await Promise.all(later);
    expect(outcomeOf(slow, token)).toBe('caller');
  });

  test('a late answer to a commit does not undo what a refresh has shown meanwhile', async () => {
    const commit: AuthTable['state']['commit'] = async (...write) => {
      const outcome = await table.state.commit(...write);
      await other.auth.refresh();
      await done(revokeToken(other.auth, root, accessor));
      await late.auth.refresh();
      return outcome;
    };
    const late = await openAuthReplica(table, { state: { ...table.state, commit } });
    const { token, accessor } = await issue();
    await late.auth.refresh();
    expect(outcomeOf(late, token)).toBe('caller');
    await done(createPolicy(late.auth, root, { ...SIGNER, name: 'slow' }));
    expect(outcomeOf(late, token)).toBe('invalid_token');
    expect(late.auth.revision).toBe(other.auth.revision);
  });

  test('without a change the rows are not read again, with one only those that changed', async () => {
    let reads = 0;
    let asked: readonly string[] = [];
    const readRows: AuthTable['state']['readRows'] = (pks) => {
      reads += 1;
      asked = pks;
      return table.state.readRows(pks);
    };
    const state = { ...table.state, readRows };
    const counted = await openAuthReplica(table, { state });
    await counted.auth.refresh();
    await counted.auth.refresh();
    expect([reads, asked.length]).toEqual([1, 2]);
    const { accessor } = await issue();
    await counted.auth.refresh();
    expect([reads, asked]).toEqual([2, [`TOKEN#${accessor}`]]);
    counted.clock.advance(LOOK_AGAIN_SECONDS);
    await issue();
    await counted.auth.refresh();
    expect([reads, asked.length]).toEqual([3, 4]);
  });

  test('a writer that is behind writes on what the other one has made', async () => {
    const first = await issue();
    const second = await issue({}, other);
    await replica.auth.refresh();
    for (const { token } of [first, second]) {
      expect([outcomeOf(replica, token), outcomeOf(other, token)]).toEqual(['caller', 'caller']);
    }
  });

  test('a management token that was revoked elsewhere changes nothing, even before this replica knows', async () => {
    const manager = await issue({ management: true, policies: [] });
    await other.auth.refresh();
    await done(revokeToken(replica.auth, root, manager.accessor));
    expect(other.authenticate(manager.token)).toMatchObject({ kind: 'caller' }); // it does not know yet
    const outcome = await issueToken(other.auth, manager.accessor, {
      policies: [],
      bound_cidrs: [],
      management: true,
    });
    expect(outcome).toEqual({ kind: 'refused', reason: 'invalid_token' });
    expect((await table.rows()).filter(({ pk }) => pk.startsWith('TOKEN#'))).toHaveLength(1);
  });

  test('a client token changes nothing but its own lifetime', async () => {
    const { accessor } = await issue();
    expect(await createPolicy(replica.auth, accessor, { ...SIGNER, name: 'mine' })).toMatchObject({ reason: 'denied' });
    expect(await deletePolicy(replica.auth, accessor, 'signer')).toMatchObject({ reason: 'denied' });
    expect(await revokeToken(replica.auth, accessor, root)).toMatchObject({ reason: 'denied' });
  });
});

describe('sealing', () => {
  test('every later request is refused as sealed, and nothing can be changed or read again', async () => {
    const { token, accessor } = await issue();
    replica.auth.seal();
    expect(outcomeOf(replica, token)).toBe('auth_sealed');
    expect(replica.auth.authenticate({ kind: 'none' }, undefined)).toEqual({ kind: 'refused', reason: 'auth_sealed' });
    await expect(replica.auth.refresh()).rejects.toMatchObject({ reason: 'auth_sealed' });
    await expect(revokeToken(replica.auth, root, accessor)).rejects.toMatchObject({ reason: 'auth_sealed' });
    expect(() => replica.auth.snapshot).toThrow('sealed');
    expect(replica.auth.revision).toBe(0);
  });

  test.each([
    ['a table that stands still', async () => undefined],
    ['a table that changes', () => issue()],
  ])('a refresh of %s that is under way does not bring the state back, and blames nobody', async (_what, change) => {
    const { token } = await issue();
    const readRows: AuthTable['state']['readRows'] = async (pks) => {
      const rows = await table.state.readRows(pks);
      late.auth.seal();
      await change();
      return rows;
    };
    const late = await openAuthReplica(table, { state: { ...table.state, readRows }, refreshed: false });
    await expect(late.auth.refresh()).rejects.toMatchObject({ reason: 'auth_sealed' });
    expect(outcomeOf(late, token)).toBe('auth_sealed');
    expect([late.rejectedHeads, late.rejectedRows, late.log.lines]).toEqual([[], [], []]);
  });

  test('a change that is durable is answered, and does not bring the state back', async () => {
    const commit: AuthTable['state']['commit'] = async (...write) => {
      const outcome = await table.state.commit(...write);
      sealing.auth.seal();
      return outcome;
    };
    const sealing = await openAuthReplica(table, { state: { ...table.state, commit } });
    await done(createPolicy(sealing.auth, root, { ...SIGNER, name: 'last' }));
    expect(outcomeOf(sealing, table.rootToken)).toBe('auth_sealed');
    expect((await table.rows()).map(({ pk }) => pk)).toContain('POLICY#last');
  });

  test('the keys that it was given are wiped', () => {
    const keys = { rows: Buffer.alloc(32, 1), tokens: Buffer.alloc(32, 2) };
    new StatefulAuthenticator(keys, { state: table.state, clock: replica.clock, log: replica.log }).seal();
    expect([...keys.rows, ...keys.tokens].every((byte) => byte === 0)).toBe(true);
  });
});
