// Slashing tables with replicas in other regions: used in the one region that their record names, and refused wherever
// two regions could each accept a vote. The service here has no replicas, so the proxy answers DescribeTable as one
// that has; everything else is real. A signer of another region is one whose client is configured for it.

import { describe, expect, it } from 'vitest';
import { NETWORK_PARTITION } from '../../../signer/slashing/dynamodb/tables/items.ts';
import { FAULTS, type FaultRule } from '../../support/fault-proxy.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { block, checkOne, history, publicKeyOf, stream, verdictName } from '../../support/slashing.ts';
import type { OpenOptions } from '../../support/slashing-dynamodb.ts';
import { SlashingTablesBehindProxy } from '../../support/slashing-dynamodb-world.ts';

const FLOOR = { slot: 1000, sourceEpoch: 30, targetEpoch: 31 };
const ELSEWHERE: OpenOptions = { client: { region: 'us-west-2' } };

const world = new SlashingTablesBehindProxy();
const { open } = world;

function described(table: object): FaultRule {
  const body = JSON.stringify({ Table: { TableName: world.tableName, TableStatus: 'ACTIVE', ...table } });
  return ({ operation }) => (operation === 'DescribeTable' ? { kind: 'answer', body } : undefined);
}

const REPLICAS = { Replicas: [{ RegionName: 'us-west-2', ReplicaStatus: 'ACTIVE' }] };
const EVENTUAL: readonly (readonly [string, object])[] = [
  ['that says so', { ...REPLICAS, GlobalTableVersion: '2019.11.21', MultiRegionConsistency: 'EVENTUAL' }],
  ['that does not say how consistent it is', REPLICAS],
  ['of the first version, which lists no replicas', { GlobalTableVersion: '2017.11.29' }],
];

describe('a table that several regions write, each by itself', () => {
  it.each(EVENTUAL)('(%s) is refused while it is bound to no region, and nothing is written', async (_, table) => {
    world.tableName = await world.tables.create();
    world.proxy.setRule(described(table));
    await expect(open({ table: world.tableName })).rejects.toThrow(/replicas in other regions.*Remove the replicas/);
    expect(await world.tables.item(world.tableName, NETWORK_PARTITION)).toBeUndefined();
  });

  it.each(EVENTUAL)('(%s) is used in the region that it is bound to, with a warning', async (_, table) => {
    await open();
    world.proxy.setRule(described(table));
    const log = recordingLog();
    const backend = await open({ table: world.tableName, log });
    expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
    expect(log.lines.map(({ message }) => message)).toEqual([expect.stringContaining('has replicas')]);
  });

  it.each([{}, REPLICAS])('is refused in another region (%o), with what to do', async (table) => {
    await open();
    world.proxy.setRule(described(table));
    await expect(open({ table: world.tableName, ...ELSEWHERE })).rejects.toThrow(
      /bound to another region.*stop all signers.*strongroom slashing jump/,
    );
  });
});

it('a table with multi-Region strong consistency is refused: it takes no transactions', async () => {
  await open();
  world.proxy.setRule(described({ ...REPLICAS, MultiRegionConsistency: 'STRONG' }));
  await expect(open({ table: world.tableName })).rejects.toThrow(/takes no transactions/);
});

it('a table that may not be described is refused, with what to allow', async () => {
  world.tableName = await world.tables.create();
  world.proxy.setRule(({ operation }) => (operation === 'DescribeTable' ? FAULTS.accessDenied : undefined));
  await expect(open({ table: world.tableName })).rejects.toThrow(/dynamodb:DescribeTable/);
});

describe('a jump moves a table to another region', () => {
  it('before it nothing is signed or written there, after it nothing where it was', async () => {
    const here = await open();
    await checkOne(here, block(1, 10, 'a'));
    const there = await open({ table: world.tableName, ...ELSEWHERE, isForJump: true });
    const unusable = { reason: 'slashing_unavailable' };
    await expect(checkOne(there, block(1, 11, 'b'))).rejects.toMatchObject(unusable);
    await expect(there.incarnate('', 'x')).rejects.toMatchObject(unusable);
    await expect(there.endTenures([publicKeyOf(1)])).rejects.toMatchObject(unusable);
    await expect(there.importHistories(stream([history(1, [[5, null]], [])]))).rejects.toMatchObject(unusable);
    await expect(there.checkHealth(new AbortController().signal)).rejects.toMatchObject(unusable);

    const { id } = await there.jump(FLOOR);
    expect(id).toBe((await there.identity()).id);
    expect(verdictName(await checkOne(there, block(1, 1000, 'b')))).toBe('block_below_low_water_mark');
    expect(verdictName(await checkOne(there, block(1, 1001, 'b')))).toBe('safe');

    await expect(here.checkHealth(new AbortController().signal)).rejects.toThrow(/bound to another region/);
    await expect(checkOne(here, block(1, 2000, 'c'))).rejects.toMatchObject(unusable);
    await expect(here.jump(FLOOR)).rejects.toMatchObject(unusable);
    await expect(open({ table: world.tableName })).rejects.toThrow(/bound to another region/);
  });

  it('and a first record where it was fails, also before that signer has read the record again', async () => {
    const here = await open();
    const there = await open({ table: world.tableName, ...ELSEWHERE, isForJump: true });
    await there.jump({ slot: 0, sourceEpoch: 0, targetEpoch: 0 });
    await expect(checkOne(here, block(1, 2000, 'c'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    expect((await there.status()).blocks).toBe(0);
  });
});
