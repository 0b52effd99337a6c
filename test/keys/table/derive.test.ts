// Public keys of the table's secrets are derived on the signing threads while other things happen: what holds when a
// key is there decides, and no secret stays behind.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { type DynamoDBServer, dynamoDBClientOptions, startDynamoDB } from '../../../rehearsal/dynamodb.ts';
import { createDynamoDBClient, QueryCommand } from '../../../signer/aws/dynamodb.ts';
import type { BlsCore } from '../../../signer/bls/bls.ts';
import { signingUnavailable } from '../../../signer/bls/queue.ts';
import { TableFreshness } from '../../../signer/keys/table/freshness.ts';
import { type TableLoad, TableLoader } from '../../../signer/keys/table/loader.ts';
import { digestOfDetails, encodeRow, shardOf, shardPartition } from '../../../signer/keys/table/rows.ts';
import { addonForTests } from '../../support/addon.ts';
import { createKeyTableWorld, type KeyTableWorld, newTableKey, type Replica } from '../../support/key-table.ts';
import { testSecret } from '../../support/keys.ts';
import { quietLog } from '../../support/slashing.ts';

const KEYS = 60;
const ROOT = Buffer.alloc(32, 5);
const TIME = '2026-11-22T00:00:00.000Z';
const keyOf = (number: number) => newTableKey(number).publicKey;
/** The shards that the first keys of the table lie in. */
const SHARDS_WITH_KEYS = [...new Set(Array.from({ length: KEYS }, (_, number) => shardOf(keyOf(number + 1))))];

let server: DynamoDBServer;
let world: KeyTableWorld;
let owner: Replica;
const opened: Replica[] = [];

beforeAll(async () => {
  server = await startDynamoDB();
  world = await createKeyTableWorld(server);
  owner = await open();
  await owner.table.create(Array.from({ length: KEYS }, (_, number) => newTableKey(number + 1)));
});
afterAll(async () => {
  for (const replica of opened) await replica.close();
  await world.close();
  await server.close();
});

async function open(coreKind: BlsCore['kind'] = 'portable'): Promise<Replica> {
  const replica = await world.openReplica({ coreKind });
  opened.push(replica);
  return replica;
}

/** A row that the holder of the master key sealed with a secret that is not its key's. */
async function putForeignSecret(publicKey: string, secretKey: Uint8Array): Promise<void> {
  const row = { publicKey, status: 'active', generation: 1, createdAt: TIME, updatedAt: TIME } as const;
  const details = { backup: undefined, deposit: undefined, detailsDigest: digestOfDetails(undefined, undefined) };
  await world.putRow(encodeRow(owner.keyCipher.encrypt({ ...row, ...details }, secretKey)));
}

/** Stops every look of the replica where its secrets are held and their public keys not yet known. */
function gateOf(replica: Replica) {
  const addKeys = replica.core.addKeys.bind(replica.core);
  const reached = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const handed: Uint8Array[] = [];
  replica.core.addKeys = async (secretKeys) => {
    handed.push(secretKeys);
    const held = addKeys(secretKeys);
    reached.resolve();
    await gate.promise;
    return held;
  };
  return { reached: reached.promise, open: gate.resolve, handed };
}

describe.each(['native', 'portable'] as const)('with the %s core', (coreKind) => {
  it.skipIf(coreKind === 'native' && !addonForTests())(
    'no public key is derived on the main thread, and rows with the secret of another key, or none, are refused',
    async () => {
      const [foreign, none] = [keyOf(KEYS + 1), keyOf(KEYS + 2)];
      await putForeignSecret(foreign, testSecret(1));
      await putForeignSecret(none, new Uint8Array(32));
      const replica = await open(coreKind);
      replica.core.addKey = () => {
        throw new Error('a public key was derived on the main thread');
      };
      await replica.loader.load();
      expect(replica.loads).toMatchObject([{ refusedRows: 2, keys: { active: KEYS, inactive: 0 } }]);
      const refused = replica.lines.filter(({ message }) => message === 'a row of the key table is refused');
      expect(new Map(refused.map(({ fields }) => [fields['public_key'], fields['reason']]))).toEqual(
        new Map([
          [foreign, 'the secret does not belong to the public key'],
          [none, 'the secret is zero or not below the group order'],
        ]),
      );
      for (const publicKey of [foreign, none]) expect(replica.store.find(publicKey)).toBeUndefined();
      if (!replica.core.memoryLocked) expect(replica.core.unlockedKeys()).toBe(KEYS);
      const key = replica.store.find(keyOf(1));
      if (key === undefined) throw new Error('a key is missing');
      expect(await replica.core.sign(key.handle, ROOT, 'normal')).toHaveLength(96);
      for (const publicKey of [foreign, none]) await world.deleteRow(publicKey);
    },
    60_000,
  );
});

it('a key that is withheld while its public key is derived is not loaded, and its secret does not stay', async () => {
  const replica = await open();
  const gate = gateOf(replica);
  const loading = replica.loader.load();
  await gate.reached;
  const release = replica.loader.withhold([keyOf(1), keyOf(2)]);
  gate.open();
  await loading;
  for (const number of [1, 2]) expect(replica.store.find(keyOf(number))).toBeUndefined();
  expect(replica.core.unlockedKeys()).toBe(KEYS - 2);
  release();
  await replica.loader.refresh();
  for (const number of [1, 2]) expect(replica.store.find(keyOf(number))).toBeDefined();
  expect(replica.core.unlockedKeys()).toBe(KEYS);
});

it('a store that is sealed while public keys are derived has no key, and no secret stays', async () => {
  const replica = await open();
  const gate = gateOf(replica);
  const loading = replica.loader.load();
  loading.catch(() => undefined);
  await gate.reached;
  replica.store.seal();
  gate.open();
  await expect(loading).rejects.toMatchObject({ reason: 'sealed' });
  expect(replica.core.unlockedKeys()).toBe(0);
  expect(replica.store.find(keyOf(1))).toBeUndefined();
});

it('when signing workers end with keys on their way the look fails, and the load goes on until all are there', async () => {
  const replica = await open();
  const addKeys = replica.core.addKeys.bind(replica.core);
  const handed: Uint8Array[] = [];
  let faults = 3;
  replica.core.addKeys = (secretKeys) => {
    handed.push(secretKeys);
    faults -= 1;
    if (faults === 2) throw signingUnavailable('thrown');
    return faults >= 0 ? Promise.reject(signingUnavailable('the signing worker ended')) : addKeys(secretKeys);
  };
  await replica.loader.load();
  expect(replica.failedLooks()).toBeGreaterThan(0);
  expect(replica.loads).toMatchObject([{ refusedRows: 0, keys: { active: KEYS, inactive: 0 } }]);
  expect(replica.core.unlockedKeys()).toBe(KEYS);
  // What was handed over is wiped, also where it was refused.
  expect(handed.length).toBeGreaterThan(3);
  for (const secretKeys of handed) expect(secretKeys.every((byte) => byte === 0)).toBe(true);
});

it('an answer that has rows of another shard loads none of them', async () => {
  const replica = await open();
  const client = createDynamoDBClient(dynamoDBClientOptions(server.endpoint));
  const send = client.send.bind(client) as (command: object) => Promise<object>;
  const [mine, other] = [0, 1].map((which) => shardPartition(SHARDS_WITH_KEYS[which] as number)) as [string, string];
  const swapped = (command: object) => {
    if (!(command instanceof QueryCommand)) return command;
    const input = structuredClone(command.input);
    if (input.ExpressionAttributeValues?.[':pk']?.S === mine) input.ExpressionAttributeValues[':pk'] = { S: other };
    return new QueryCommand(input);
  };
  Object.assign(client, { send: (command: object) => send(swapped(command)) });
  const { store, keyCipher } = replica;
  const parts = {
    client,
    tableName: world.tableName,
    store,
    keyCipher,
    freshness: new TableFreshness(),
    log: quietLog,
  };
  const options = { statusFilter: ['active'], refreshIntervalSeconds: 0, maxConcurrentReads: 16 } as const;
  const loads: TableLoad[] = [];
  const loader = new TableLoader(options, { ...parts, clock: systemClock, onLoaded: (load) => loads.push(load) });
  await loader.load();
  const numbers = Array.from({ length: KEYS }, (_, number) => number + 1);
  const inShard = (partition: string) =>
    numbers.filter((number) => shardPartition(shardOf(keyOf(number))) === partition);
  expect(inShard(mine).map((number) => store.find(keyOf(number)))).toEqual(inShard(mine).map(() => undefined));
  expect(loads).toMatchObject([{ refusedRows: inShard(other).length, keys: { active: KEYS - inShard(mine).length } }]);
  client.destroy();
});
