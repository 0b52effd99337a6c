// How replicas come to their master key after a ceremony of another generation, beside another deployment with the same
// custody keys.

import { describe, expect, it } from 'vitest';
import { type CeremonyBlock, deploymentOf } from '../../ceremony/definition.ts';
import { allRows, alterRecord, bootMany, REPLICAS, setBehaviour, world } from './booted-replicas.ts';
import { bootReplica, fingerprint, NETWORK, said, unsealForCommand } from './replicas.ts';

describe('rotation', () => {
  it('a higher generation wraps the same master key for the new keys; the retired ones are not needed afterwards', async () => {
    const table = await world.createTable();
    const old = world.createCeremony();
    const first = await bootReplica(world, { table, ceremony: old });
    const next = successor(old);
    const rotated = await bootReplica(world, { table, ceremony: next });
    expect(said(rotated, 'rotated')).toBe(true);
    expect(fingerprint(rotated)).toBe(fingerprint(first));
    for (let key = 0; key < 3; key++) setBehaviour(old, key, 'deleted');
    const after = await bootReplica(world, { table, ceremony: { ...next, retired_kms_keys: [] } });
    expect(fingerprint(after)).toBe(fingerprint(first));
    expect(said(after, 'rotated')).toBe(false);
  });

  it(`of ${REPLICAS} replicas that rotate at once one writes, and all go on with the same master key`, async () => {
    for (let round = 0; round < 8; round++) {
      const table = await world.createTable();
      const old = world.createCeremony();
      const first = await bootReplica(world, { table, ceremony: old });
      const replicas = await bootMany(REPLICAS, { table, ceremony: successor(old) });
      expect(replicas.filter((replica) => said(replica, 'rotated'))).toHaveLength(1);
      expect(new Set([first, ...replicas].map(fingerprint)).size).toBe(1);
    }
  });

  it('replicas that run the former ceremony keep their master key, and cannot start again: startup failure 9', async () => {
    const table = await world.createTable();
    const old = world.createCeremony();
    const running = await bootReplica(world, { table, ceremony: old });
    const rotated = await bootReplica(world, { table, ceremony: successor(old) });
    expect(fingerprint(running)).toBe(fingerprint(rotated));
    await expect(bootReplica(world, { table, ceremony: old })).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringMatching(/generation 2 and this signer has generation 1: give this signer the newer/),
    });
  });

  it('a lost key is rotated away, listed as retired or not', async () => {
    for (const listed of [true, false]) {
      const table = await world.createTable();
      const old = world.createCeremony({ keys: 3, threshold: 2 });
      const first = await bootReplica(world, { table, ceremony: old });
      setBehaviour(old, 0, 'deleted');
      const kept = old.kms_keys.slice(1);
      const next = {
        ...old,
        generation: 2,
        kms_keys: [...kept, { arns: [world.createKey()] }],
        retired_kms_keys: listed ? old.kms_keys.slice(0, 1) : [],
      };
      const rotated = await bootReplica(world, { table, ceremony: next });
      expect(fingerprint(rotated)).toBe(fingerprint(first));
      expect(fingerprint(await bootReplica(world, { table, ceremony: next }))).toBe(fingerprint(first));
    }
  });

  it('a new key that does not take its share leaves the row as it is', async () => {
    const table = await world.createTable();
    const old = world.createCeremony();
    await bootReplica(world, { table, ceremony: old });
    const rows = await allRows(table);
    const next = successor(old);
    setBehaviour(next, 0, 'denied');
    await expect(bootReplica(world, { table, ceremony: next })).rejects.toMatchObject({ startupFailure: 8 });
    expect(await allRows(table)).toEqual(rows);
  });
});

describe('two signers that share custody keys, threshold and generation', () => {
  it('do not take each other’s MASTER_KEY row: startup failure 9, which names both deployments', async () => {
    const [table, other] = [await world.createTable(), await world.createTable()];
    const ceremony = world.createCeremony();
    await bootReplica(world, { table, ceremony });
    await bootReplica(world, { table: other, ceremony });
    await copyRow(other, table);
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringContaining(`of the deployment "${other}" and this signer is of "${table}"`),
    });
  });

  it('a row that was made to name the other deployment opens with no key: startup failure 8', async () => {
    const [table, other] = [await world.createTable(), await world.createTable()];
    const ceremony = world.createCeremony();
    await bootReplica(world, { table, ceremony });
    await bootReplica(world, { table: other, ceremony });
    await copyRow(other, table);
    await alterRecord(table, (record) => (record.deployment = { network: NETWORK, id: table }));
    await expect(bootReplica(world, { table, ceremony })).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringContaining('was not made by this key for this deployment'),
    });
  });

  it('tables of one name on two networks are two deployments', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    await bootReplica(world, { table, ceremony });
    const terms = { deployment: deploymentOf(`0x${'00'.repeat(32)}`, table) };
    await expect(bootReplica(world, { table, ceremony, terms })).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringContaining('of the network with the genesis validators root 0x4b'),
    });
  });

  it('a table that was restored under another name opens with the id of its deployment', async () => {
    const [table, restored] = [await world.createTable(), await world.createTable()];
    const ceremony = world.createCeremony();
    const first = await bootReplica(world, { table, ceremony });
    for (const pk of ['MASTER_KEY', 'ROOT_TOKEN_BOOTSTRAP', 'AUTH_REVISION']) await copyRow(table, restored, pk);
    await expect(bootReplica(world, { table: restored, ceremony })).rejects.toThrow(`deployment_id: ${table}`);
    const terms = { deployment: deploymentOf(NETWORK, table) };
    expect(fingerprint(await bootReplica(world, { table: restored, ceremony, terms }))).toBe(fingerprint(first));
  });
});

it('a MASTER_KEY row that names no deployment is none: nothing opens it', async () => {
  const table = await world.createTable();
  const ceremony = world.createCeremony();
  await bootReplica(world, { table, ceremony });
  await alterRecord(table, (record) => {
    Reflect.deleteProperty(record, 'deployment');
  });
  for (const open of [bootReplica, unsealForCommand]) {
    await expect(open(world, { table, ceremony })).rejects.toMatchObject({ startupFailure: 9 });
  }
});

/** New keys, a higher generation, and the former keys retired. */
function successor(ceremony: CeremonyBlock): CeremonyBlock {
  const next = world.createCeremony({ keys: ceremony.kms_keys.length, threshold: ceremony.kms_threshold });
  return { ...next, generation: ceremony.generation + 1, retired_kms_keys: ceremony.kms_keys };
}

async function copyRow(from: string, to: string, pk = 'MASTER_KEY'): Promise<void> {
  await world.putRow(to, { ...(await world.row(from, pk)) });
}
