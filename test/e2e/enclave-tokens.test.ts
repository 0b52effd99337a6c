// What a parent gets that puts an older state table back around a restart: tokens that were revoked since live again,
// and nothing inside notices it. What ends them is their lifetime, judged by the security module's time, which the test
// moves and which the parent cannot. The start says how many tokens have none.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import {
  type AttributeValue,
  createDynamoDBClient,
  DeleteItemCommand,
  type DynamoDBClient,
  PutItemCommand,
  ScanCommand,
} from '../../signer/aws/dynamodb.ts';
import { type AttestedEnclave, startAttested } from '../support/attested-enclave.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';

const LIFETIME_SECONDS = 600;
const LASTING = 12;
const WARNING = /^tokens have no lifetime/;

type Item = Record<string, AttributeValue>;

let moved = 0;
const clock = { now: () => Date.now() + moved };
let world: EnclaveWorld;
let tables: DynamoDBClient;
let running: AttestedEnclave;
let root: string;

beforeAll(async () => {
  world = await startEnclaveWorld(clock);
  tables = createDynamoDBClient(dynamoDBClientOptions(world.custody.dynamodb.endpoint));
  await start();
  root = await world.custody.rootToken(world.stateTable);
  await running.client.call('/api/v1/auth/policies', {
    token: root,
    body: { name: 'all', rules: [{ effect: 'allow' }] },
  });
});
afterAll(async () => {
  await running.stop();
  tables.destroy();
  await world.close();
});

async function start(): Promise<void> {
  running = await startAttested(world, clock);
}

const warnings = () => running.parent.lines.filter(({ msg }) => WARNING.test(String(msg)));

async function issue(members: object = {}): Promise<{ readonly token: string; readonly accessor: string }> {
  const answer = await running.client.call('/api/v1/auth/tokens', {
    token: root,
    body: { policies: ['all'], ...members },
  });
  expect(answer.status).toBe(201);
  return answer.json as { token: string; accessor: string };
}

const statusOf = async ({ token }: { readonly token: string }): Promise<number> =>
  (await running.client.call('/api/v1/eth2/highWatermark', { token })).status;

async function authRows(): Promise<Item[]> {
  const { Items = [] } = await tables.send(new ScanCommand({ TableName: world.stateTable, ConsistentRead: true }));
  return Items.filter(({ pk }) => /^(?:TOKEN#|POLICY#|AUTH_REVISION$)/.test(pk?.S ?? ''));
}

async function putBack(rows: readonly Item[]): Promise<void> {
  for (const { pk } of await authRows()) {
    await tables.send(new DeleteItemCommand({ TableName: world.stateTable, Key: { pk: pk as AttributeValue } }));
  }
  for (const Item of rows) await tables.send(new PutItemCommand({ TableName: world.stateTable, Item }));
}

describe('tokens in an enclave', () => {
  let lasting: { readonly token: string; readonly accessor: string }[];
  let mortal: { readonly token: string; readonly accessor: string };

  it('without a lifetime are no matter of a warning while there are none but the root token', () => {
    expect(warnings()).toEqual([]);
  });

  it('that were revoked live again when the parent puts the table back, and the start warns of those without a lifetime', async () => {
    mortal = await issue({ ttl_seconds: LIFETIME_SECONDS });
    lasting = [];
    for (let count = 0; count < LASTING; count++) lasting.push(await issue());
    const before = await authRows();
    const revoked = [mortal, lasting[0] as typeof mortal];
    for (const { accessor } of revoked) {
      const answer = await running.client.call(`/api/v1/auth/tokens/${accessor}`, { token: root, method: 'DELETE' });
      expect(answer.status).toBe(204);
    }
    expect(await Promise.all(revoked.map(statusOf))).toEqual([403, 403]);
    await running.stop();
    await putBack(before);
    await start();
    expect(await Promise.all(revoked.map(statusOf))).toEqual([200, 200]);

    const [warning, ...others] = warnings();
    expect(others).toEqual([]);
    expect(warning).toMatchObject({ level: 'warn', tokens: LASTING });
    const named = warning?.['accessors'] as string[];
    expect(named).toHaveLength(10);
    expect(lasting.map(({ accessor }) => accessor)).toEqual(expect.arrayContaining(named));
  });

  it('end with their lifetime by the time of the security module, whatever the enclave’s own clock says', async () => {
    await running.stop();
    moved += (LIFETIME_SECONDS + 60) * 1000;
    await start();
    expect(await statusOf(mortal)).toBe(403);
    expect(await statusOf(lasting[0] as typeof mortal)).toBe(200);
    // A new one is alive: its lifetime began by the same time.
    expect(await statusOf(await issue({ ttl_seconds: LIFETIME_SECONDS }))).toBe(200);
  });
});
