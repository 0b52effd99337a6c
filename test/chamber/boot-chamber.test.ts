// How replicas come to their master key, against a real table server and a KMS server with key material of its own.

import { describe, expect, it } from 'vitest';
import { deploymentOf } from '../../ceremony/definition.ts';
import type { KeyBehaviour } from '../../rehearsal/kms/server.ts';
import { PATIENT } from '../support/patience.ts';
import { allRows, alterRecord, bootMany, REPLICAS, type RecordJson, setBehaviour, world } from './booted-replicas.ts';
import { bootReplica, fingerprint, NETWORK, said } from './replicas.ts';

const ROUNDS = 25;

/** No key here is silent: each refuses, or cuts the connection. */
const ONE_ATTEMPT = { ...PATIENT, maxAttempts: 1 };

describe('auto-init', () => {
  it('writes four rows, and the holder of the identity reads a management token', async () => {
    const table = await world.createTable();
    const replica = await bootReplica(world, { table, ceremony: world.createCeremony() });
    expect(replica.booted.kind).toBe('unsealed');
    expect(await world.row(table, 'MASTER_KEY')).toMatchObject({ generation: { N: '1' } });
    expect(await world.row(table, 'AUTH_REVISION')).toMatchObject({ revision: { N: '1' } });
    expect((await world.row(table, 'ROOT_TOKEN_BOOTSTRAP'))?.['value']?.S).toMatch(
      /^-----BEGIN AGE ENCRYPTED FILE-----/,
    );
    expect(await world.rootToken(table)).toMatch(/^sr_mgmt_/);
  });

  it(`of ${REPLICAS} replicas on a fresh table one initialises, all unseal, and there is one root token`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const table = await world.createTable();
      const ceremony = world.createCeremony();
      const replicas = await bootMany(REPLICAS, { table, ceremony });
      expect(replicas.filter((replica) => said(replica, 'initialised'))).toHaveLength(1);
      expect(new Set(replicas.map(fingerprint)).size).toBe(1);
      expect(await world.row(table, 'AUTH_REVISION')).toMatchObject({ revision: { N: '1' } });
      expect(await world.rootToken(table)).toMatch(/^sr_mgmt_/);
    }
  });

  it('a later replica unseals the same master key and writes nothing', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    const first = await bootReplica(world, { table, ceremony });
    const rows = await allRows(table);
    const second = await bootReplica(world, { table, ceremony });
    expect(fingerprint(second)).toBe(fingerprint(first));
    expect(await allRows(table)).toEqual(rows);
  });

  it('a key that refuses its share stops it, and nothing is written', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    setBehaviour(ceremony, 1, 'disabled');
    await expect(bootReplica(world, { table, ceremony })).rejects.toThrow(/disabled: enable it/);
    expect(await allRows(table)).toEqual([undefined, undefined, undefined]);
  });

  it('rows of an earlier master key without MASTER_KEY are not overwritten', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    await bootReplica(world, { table, ceremony });
    await world.deleteRow(table, 'MASTER_KEY');
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringContaining('no MASTER_KEY row. Restore that row'),
    });
    await world.deleteRow(table, 'ROOT_TOKEN_BOOTSTRAP');
    await expect(bootReplica(world, { table, ceremony })).rejects.toThrow(/no MASTER_KEY row/);
  });

  it('policies or tokens alone are enough: something was lost, and no new master key is made', async () => {
    const ceremony = world.createCeremony();
    for (const pk of ['POLICY#validator-client', `TOKEN#acc_${'0'.repeat(32)}`]) {
      const table = await world.createTable();
      await world.putRow(table, { pk: { S: pk }, content: { S: '{}' } });
      await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({
        startupFailure: 8,
        message: expect.stringContaining('no MASTER_KEY row. Restore that row'),
      });
      expect(await world.row(table, 'MASTER_KEY')).toBeUndefined();
    }
  });

  it('a latch on a fresh table: sealed, and nothing is initialised', async () => {
    const table = await world.createTable();
    await world.putRow(table, { pk: { S: 'SEAL_OVERRIDE' } });
    const replica = await bootReplica(world, { table, ceremony: world.createCeremony() });
    expect(replica.booted).toEqual({ kind: 'sealed', latch: { reason: null, accessor: null, sealedAt: null } });
    expect(await world.row(table, 'MASTER_KEY')).toBeUndefined();
  });
});

describe('auto-unseal', () => {
  const REASONS: readonly (readonly [KeyBehaviour, RegExp])[] = [
    ['disabled', /disabled: enable it/],
    ['deleted', /not there: deleted/],
    ['pending_deletion', /pending deletion/],
    ['denied', /access denied/],
    ['unreachable', /unreachable: no answer in time/],
  ];

  it.each(REASONS)(
    'a key that is %s: the threshold of the others suffices, fewer is startup failure 8',
    async (behaviour, reason) => {
      const table = await world.createTable();
      const ceremony = world.createCeremony({ keys: 3, threshold: 2 });
      const first = await bootReplica(world, { table, ceremony });
      setBehaviour(ceremony, 0, behaviour);
      const second = await bootReplica(world, { table, ceremony, kms: ONE_ATTEMPT });
      expect(fingerprint(second)).toBe(fingerprint(first));
      expect(said(second, 'the others suffice')).toBe(true);

      setBehaviour(ceremony, 2, behaviour);
      const failure = bootReplica(world, { table, ceremony, kms: ONE_ATTEMPT });
      await expect(failure).rejects.toMatchObject({ startupFailure: 8, message: expect.stringMatching(reason) });
      await expect(failure).rejects.toThrow(/needs 2 of its 3 custody keys and 1 served/);

      setBehaviour(ceremony, 2, 'enabled');
      expect(fingerprint(await bootReplica(world, { table, ceremony, kms: ONE_ATTEMPT }))).toBe(fingerprint(first));
    },
  );

  it('any k of n keys suffice', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony({ keys: 4, threshold: 2 });
    const first = fingerprint(await bootReplica(world, { table, ceremony }));
    for (const [a, b] of [
      [0, 1],
      [0, 2],
      [0, 3],
      [1, 2],
      [1, 3],
      [2, 3],
    ] as const) {
      for (let key = 0; key < 4; key++) setBehaviour(ceremony, key, key === a || key === b ? 'enabled' : 'disabled');
      expect(fingerprint(await bootReplica(world, { table, ceremony }))).toBe(first);
    }
  });

  it('a threshold of one works with the one key that is left', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony({ keys: 2, threshold: 1 });
    const first = fingerprint(await bootReplica(world, { table, ceremony }));
    setBehaviour(ceremony, 0, 'deleted');
    expect(fingerprint(await bootReplica(world, { table, ceremony }))).toBe(first);
  });

  it('shares that changed places: startup failure 8 or 9, never a master key', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony({ keys: 2, threshold: 2 });
    await bootReplica(world, { table, ceremony });
    await alterRecord(table, (record) => {
      const [a, b] = record.shares;
      if (a === undefined || b === undefined) throw new Error('two shares');
      [a.ciphertext, b.ciphertext] = [b.ciphertext, a.ciphertext];
    });
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringContaining('was not made by this key for this deployment, generation and share'),
    });
  });

  it('a row of another ceremony: startup failure 9 says to raise the generation, and no key is called', async () => {
    const table = await world.createTable();
    await bootReplica(world, { table, ceremony: world.createCeremony() });
    const calls = world.kms.calls.length;
    await expect(bootReplica(world, { table, ceremony: world.createCeremony() })).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringContaining('a changed ceremony needs a higher generation'),
    });
    expect(world.kms.calls.length).toBe(calls);
  });

  it('shares of another master key under the same keys: the share binding does not verify, startup failure 9', async () => {
    const ceremony = world.createCeremony({ keys: 2, threshold: 2 });
    const [table, other] = [await world.createTable(), await world.createTable()];
    await bootReplica(world, { table, ceremony });
    await bootReplica(world, { table: other, ceremony, terms: { deployment: deploymentOf(NETWORK, table) } });
    const foreign = JSON.parse((await world.row(other, 'MASTER_KEY'))?.['record']?.S ?? '') as RecordJson;
    await alterRecord(table, (record) => {
      record.shares = foreign.shares;
    });
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringContaining('the share binding of the MASTER_KEY row does not verify'),
    });
  });

  it.each<readonly [string, (record: RecordJson) => void]>([
    ['the binding', (record) => (record.binding = Buffer.alloc(32).toString('base64'))],
    ['the threshold', (record) => (record.threshold = 1)],
    ['the generation of the record alone', (record) => (record.generation = 2)],
    ['a member that does not belong', (record) => Object.assign(record, { extra: true })],
  ])('a row with another value of %s is startup failure 9', async (_what, alter) => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    await bootReplica(world, { table, ceremony });
    await alterRecord(table, alter);
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({ startupFailure: 9 });
  });

  it('a generation beside the record that differs from it is startup failure 9', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    await bootReplica(world, { table, ceremony });
    await world.putRow(table, { ...(await world.row(table, 'MASTER_KEY')), generation: { N: '5' } });
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({ startupFailure: 9 });
  });

  it('a MASTER_KEY row without a record is startup failure 9', async () => {
    const table = await world.createTable();
    await world.putRow(table, { pk: { S: 'MASTER_KEY' } });
    await expect(bootReplica(world, { table, ceremony: world.createCeremony() })).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringContaining('not one that this version writes'),
    });
  });

  it('a latch: sealed, no custody key is called; with the row deleted the next boot unseals', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    const first = await bootReplica(world, { table, ceremony });
    await world.putRow(table, { pk: { S: 'SEAL_OVERRIDE' }, reason: { S: 'drill' } });
    const calls = world.kms.calls.length;
    for (let restart = 0; restart < 3; restart++) {
      expect((await bootReplica(world, { table, ceremony })).booted).toMatchObject({
        kind: 'sealed',
        latch: { reason: 'drill' },
      });
    }
    expect(world.kms.calls.length).toBe(calls);
    await world.deleteRow(table, 'SEAL_OVERRIDE');
    expect(fingerprint(await bootReplica(world, { table, ceremony }))).toBe(fingerprint(first));
  });

  it('a table that does not exist: startup failure 8 names it and the command that creates it', async () => {
    await expect(bootReplica(world, { table: 'nowhere', ceremony: world.createCeremony() })).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringMatching(/"nowhere".*strongroom setup tables/),
    });
  });
});

describe('the root token', () => {
  it('is made anew when its row was deleted, by one of many replicas, and the earlier one is revoked', async () => {
    for (let round = 0; round < 5; round++) {
      const table = await world.createTable();
      const ceremony = world.createCeremony();
      const first = await bootReplica(world, { table, ceremony });
      const earlier = await world.rootToken(table);
      await world.deleteRow(table, 'ROOT_TOKEN_BOOTSTRAP');
      const replicas = await bootMany(REPLICAS, { table, ceremony });
      expect(replicas.filter((replica) => said(replica, 'a new root token is written'))).toHaveLength(1);
      expect(new Set([first, ...replicas].map(fingerprint)).size).toBe(1);
      expect(await world.rootToken(table)).not.toBe(earlier);
      expect(await world.row(table, 'AUTH_REVISION')).toMatchObject({ revision: { N: '2' } });
      const manifest = JSON.parse((await world.row(table, 'AUTH_REVISION'))?.['manifest']?.S ?? '') as {
        rows: unknown[];
      };
      expect(manifest.rows).toHaveLength(1);
    }
  });
});

it.each([
  ['altered', async (table: string) => alterHead(table)],
  ['gone', async (table: string) => world.deleteRow(table, 'AUTH_REVISION')],
])(
  'a root token made anew over a head that is %s says loudly that everything else is dropped',
  async (_what, attack) => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    const first = await bootReplica(world, { table, ceremony });
    await world.deleteRow(table, 'ROOT_TOKEN_BOOTSTRAP');
    const honest = await bootReplica(world, { table, ceremony });
    await world.deleteRow(table, 'ROOT_TOKEN_BOOTSTRAP');
    await attack(table);
    const later = await bootReplica(world, { table, ceremony });
    const dropped = 'ALL POLICIES AND ALL OTHER TOKENS ARE DROPPED';
    expect([first, honest, later].map((replica) => said(replica, dropped))).toEqual([false, false, true]);
    expect(later.log.find(({ message }) => message.includes(dropped))?.level).toBe('error');
  },
);

async function alterHead(table: string): Promise<void> {
  const item = await world.row(table, 'AUTH_REVISION');
  await world.putRow(table, { ...item, pk: { S: 'AUTH_REVISION' }, mac: { B: Buffer.alloc(32) } });
}
