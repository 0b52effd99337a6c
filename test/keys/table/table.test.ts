// The key table on a real table server: what changes do, and what is true when an answer to one is lost.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { keyOfRow, shardOf } from '../../../signer/keys/table/rows.ts';
import type { StoredDeposit } from '../../../signer/keys/table/types.ts';
import { FAULTS, type FaultProxy, faultTimes, startFaultProxy } from '../../support/fault-proxy.ts';
import { newTableKey } from '../../support/key-table.ts';
import { A, B, keys, namesOf, open, openLoaded, server } from './table-set-up.ts';

const DEPOSIT: StoredDeposit = {
  pubkey: '00',
  withdrawal_credentials: '01',
  amount: 32_000_000_000,
  signature: '02',
  deposit_message_root: '03',
  deposit_data_root: '04',
  fork_version: '00000000',
  network_name: 'mainnet',
  deposit_cli_version: '2.8.0',
};

const wish = (publicKey: string, status: 'active' | 'inactive') => ({ publicKey, status });

describe('changes', () => {
  it('a created key is listed, has its dates, and gives its secret back', async () => {
    const { table } = await open();
    expect(await table.create([{ ...A, backup: 'armored', deposit: DEPOSIT }])).toEqual(
      new Map([[A.publicKey, 'created']]),
    );
    const row = (await table.get([A.publicKey, B.publicKey])).get(A.publicKey);
    expect(row).toMatchObject({ status: 'active', generation: 1, hasBackup: true, deposit: DEPOSIT });
    expect(row?.createdAt).toBe(row?.updatedAt);
    expect((await table.list({ limit: 10 })).keys).toEqual([row]);
    expect(await table.secretOf(A.publicKey)).toEqual(Buffer.from(A.secretKey));
  });

  it('a key that is there stays as it is, and the rest of the batch is created', async () => {
    const { table } = await open();
    await table.create([{ ...A, status: 'inactive' }]);
    const outcomes = await table.create([A, B]);
    expect(outcomes).toEqual(
      new Map([
        [A.publicKey, 'duplicate'],
        [B.publicKey, 'created'],
      ]),
    );
    expect((await table.get([A.publicKey])).get(A.publicKey)?.status).toBe('inactive');
  });

  it('more keys than one transaction holds are created, listed page by page once each, and deleted', async () => {
    const { table } = await open();
    const many = keys(100, 130);
    await table.create(many);
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await table.list({ limit: 7, cursor });
      expect(page.keys.length).toBeLessThanOrEqual(7);
      listed.push(...page.keys.map(({ publicKey }) => publicKey));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(listed.sort()).toEqual(namesOf(many));
    const deleted = await table.delete(namesOf(many));
    expect(new Set(deleted.values())).toEqual(new Set(['deleted']));
    expect((await table.list({ limit: 1000 })).keys).toEqual([]);
  });

  it('a status is changed, unchanged or not found, and a list can ask for one status', async () => {
    const { table } = await open();
    await table.create([A, B]);
    expect(
      await table.setStatus([
        wish(A.publicKey, 'inactive'),
        wish(B.publicKey, 'active'),
        wish(newTableKey(3).publicKey, 'active'),
      ]),
    ).toEqual(
      new Map([
        [A.publicKey, 'updated'],
        [B.publicKey, 'unchanged'],
        [newTableKey(3).publicKey, 'not_found'],
      ]),
    );
    const inactive = (await table.list({ limit: 10, status: 'inactive' })).keys;
    expect(inactive.map(({ publicKey }) => publicKey)).toEqual([A.publicKey]);
    expect(await table.secretOf(A.publicKey)).toEqual(Buffer.from(A.secretKey));
  });

  it('deposit data is stored once, kept when other data comes, and replaced when asked for', async () => {
    const { table } = await open();
    await table.create([{ ...A, backup: 'armored' }]);
    const other = { ...DEPOSIT, withdrawal_credentials: '99' };
    expect(await table.setDeposit(A.publicKey, DEPOSIT, { replace: false })).toBe('created');
    expect(await table.setDeposit(A.publicKey, DEPOSIT, { replace: false })).toBe('existing');
    expect(await table.setDeposit(A.publicKey, other, { replace: false })).toBe('conflict');
    expect(await table.setDeposit(A.publicKey, other, { replace: true })).toBe('created');
    expect(await table.setDeposit(B.publicKey, other, { replace: true })).toBe('not_found');
    expect((await table.get([A.publicKey])).get(A.publicKey)).toMatchObject({ deposit: other, hasBackup: true });
  });

  it('a cursor that no list gave is refused', async () => {
    const { table } = await open();
    await expect(table.list({ limit: 1, cursor: '16.' })).rejects.toMatchObject({ reason: 'malformed_parameter' });
  });

  it('many writers of one shard all succeed, each key once', async () => {
    const one = await open();
    const two = await open();
    const sameShard = keys(0, 400)
      .filter(({ publicKey }) => shardOf(publicKey) === 5)
      .slice(0, 12);
    const results = await Promise.all(sameShard.flatMap((key) => [one.table.create([key]), two.table.create([key])]));
    const outcomes = results.flatMap((result) => [...result.values()]);
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(12);
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(12);
    const generations = (await one.table.list({ limit: 100 })).keys.map(({ generation }) => generation);
    expect(new Set(generations).size).toBe(12);
  });
});

describe('answers that are lost', () => {
  let proxy: FaultProxy;
  beforeEach(async () => {
    proxy = await startFaultProxy(server.endpoint);
  });
  afterEach(() => proxy.close());

  it.each(['resetAfter', 'dropAnswer', 'internalErrorAfterApplying', 'resetBefore', 'unavailable'] as const)(
    'a change whose answer meets %s is told as what it was',
    async (fault) => {
      const { table } = await open({ endpoint: proxy.endpoint });
      const lose = () => proxy.setRule(faultTimes(2, FAULTS[fault], 'TransactWriteItems'));
      lose();
      expect(await table.create([A])).toEqual(new Map([[A.publicKey, 'created']]));
      lose();
      expect(await table.setStatus([{ publicKey: A.publicKey, status: 'inactive' }])).toEqual(
        new Map([[A.publicKey, 'updated']]),
      );
      lose();
      expect(await table.delete([A.publicKey])).toEqual(new Map([[A.publicKey, 'deleted']]));
    },
    20_000,
  );

  it('a change that was made and is answered with a failed condition, as the echo of a lost answer, is recognised', async () => {
    const { table } = await open({ endpoint: proxy.endpoint });
    const echo = { kind: 'error', status: 400, name: 'ConditionalCheckFailedException', applied: true } as const;
    const lose = () => proxy.setRule(faultTimes(1, echo, 'TransactWriteItems'));
    lose();
    expect(await table.create([A])).toEqual(new Map([[A.publicKey, 'created']]));
    lose();
    expect(await table.setStatus([wish(A.publicKey, 'inactive')])).toEqual(new Map([[A.publicKey, 'updated']]));
    lose();
    expect(await table.setDeposit(A.publicKey, DEPOSIT, { replace: false })).toBe('created');
    lose();
    expect(await table.delete([A.publicKey])).toEqual(new Map([[A.publicKey, 'deleted']]));
    expect(proxy.faults).toBe(4);
  });

  it('a table that stays away is an error and never an answer', async () => {
    const { table } = await open({ endpoint: proxy.endpoint });
    proxy.setRule(() => FAULTS.resetBefore);
    await expect(table.create([A])).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    await expect(table.get([A.publicKey])).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    await expect(table.list({ limit: 1 })).rejects.toMatchObject({ reason: 'key_table_unavailable' });
  });

  it('a look that fails keeps the loaded set and is counted; the next one goes on', async () => {
    await (await open()).table.create([A]);
    const replica = await openLoaded({ endpoint: proxy.endpoint });
    proxy.setRule(() => FAULTS.unavailable);
    await expect(replica.loader.refresh()).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    expect(replica.failedLooks()).toBe(1);
    expect(replica.store.publicKeys()).toEqual([A.publicKey]);
    proxy.setRule(undefined);
    await (await open()).table.create([B]);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual(namesOf([A, B]));
  });

  it('a table that is out of sight for ten seconds is stale, until it is looked at again', async () => {
    let ahead = 0;
    const clock = { now: systemClock.now, monotonic: () => ahead };
    const replica = await openLoaded({ endpoint: proxy.endpoint, clock });
    ahead = 10_000;
    expect(replica.loader.stale).toBe(false);
    ahead = 10_001;
    expect(replica.loader.stale).toBe(true);
    proxy.setRule(() => FAULTS.unavailable);
    await replica.loader.refresh().catch(() => undefined);
    expect(replica.loader.stale).toBe(true);
    proxy.setRule(undefined);
    await replica.loader.refresh();
    expect(replica.loader.stale).toBe(false);
  });

  it('a shard that cannot be read does not keep a key of another shard', async () => {
    const owner = await open();
    const other = keys(3, 50).find(({ publicKey }) => shardOf(publicKey) !== shardOf(A.publicKey));
    if (other === undefined) throw new Error('no such key');
    await owner.table.create([A, other]);
    const replica = await openLoaded({ endpoint: proxy.endpoint });
    await owner.table.setStatus([A, other].map(({ publicKey }) => ({ publicKey, status: 'inactive' as const })));
    const partition = String(keyOfRow(A.publicKey)['pk']?.S);
    proxy.setRule(({ operation, body }) =>
      operation === 'Query' && body.includes(partition) ? FAULTS.unavailable : undefined,
    );
    await expect(replica.loader.refresh()).rejects.toMatchObject({ reason: 'key_table_unavailable' });
    expect(replica.store.publicKeys()).toEqual([A.publicKey]);
    proxy.setRule(undefined);
    await replica.loader.refresh();
    expect(replica.store.publicKeys()).toEqual([]);
  });
});
