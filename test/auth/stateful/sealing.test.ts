// Sealing is for good: every later request is refused, and no refresh or change under way brings the state back.

import { describe, expect, it } from 'vitest';
import { createPolicy } from '../../../signer/auth/stateful/policies.ts';
import { StatefulAuthenticator } from '../../../signer/auth/stateful/stateful.ts';
import { revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import { type AuthTable, openAuthReplica } from '../../support/stateful-auth.ts';
import { done, issue, outcomeOf, replica, root, SIGNER, table } from './replica-set-up.ts';

describe('sealing', () => {
  it('every later request is refused as sealed, and nothing can be changed or read again', async () => {
    const { token, accessor } = await issue();
    replica.auth.seal();
    expect(outcomeOf(replica, token)).toBe('auth_sealed');
    expect(replica.auth.authenticate({ kind: 'none' }, undefined)).toEqual({ kind: 'refused', reason: 'auth_sealed' });
    await expect(replica.auth.refresh()).rejects.toMatchObject({ reason: 'auth_sealed' });
    await expect(revokeToken(replica.auth, root, accessor)).rejects.toMatchObject({ reason: 'auth_sealed' });
    expect(() => replica.auth.snapshot).toThrow('sealed');
    expect(replica.auth.revision).toBe(0);
  });

  it.each([
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

  it('a change that is durable is answered, and does not bring the state back', async () => {
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

  it('the keys that it was given are wiped', () => {
    const keys = { rows: Buffer.alloc(32, 1), tokens: Buffer.alloc(32, 2) };
    new StatefulAuthenticator(keys, { state: table.state, clock: replica.clock, log: replica.log }).seal();
    expect([...keys.rows, ...keys.tokens].every((byte) => byte === 0)).toBe(true);
  });
});
