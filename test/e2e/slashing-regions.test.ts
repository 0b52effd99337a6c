// A DynamoDB slashing table that moves to another region, with the real program: refused there until
// `strongroom slashing jump` has moved it, and refused afterwards where it was. And one that loses a record under a
// running signer, which raises the table to the present and counts that.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dynamoDBClientOptions, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { createDynamoDBClient, DeleteItemCommand } from '../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { markPartition } from '../../signer/slashing/dynamodb/tables/items.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { attestation, block, call, rootOf, signCall } from '../support/requests.ts';

const TABLE = 'slashing';
const SIGNED = [block({ slot: 1000 }), attestation({ source: 10, target: 11 })];
const SLASHABLE = [block({ slot: 1000, body: rootOf(9) }), attestation({ source: 10, target: 11, head: rootOf(9) })];

let dynamodb: Awaited<ReturnType<typeof startDynamoDB>>;
let deployment: Deployment;

beforeAll(async () => {
  dynamodb = await startDynamoDB();
  await dynamodb.createTable(tableDefinition(TABLE));
  deployment = deploy(1, { anti_slashing: { backend: 'dynamodb', table: TABLE } });
});
afterAll(() => dynamodb?.close());

function environment(region: string): Record<string, string> {
  return {
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: 'TEST',
    AWS_SECRET_ACCESS_KEY: 'TEST',
  };
}

async function signEach(region: string, bodies: readonly object[]): Promise<number[]> {
  const signer = await deployment.start({ env: environment(region) });
  const statuses: number[] = [];
  for (const body of bodies) {
    statuses.push((await signCall(signer.url, deployment.keys[0]?.publicKey ?? '', body)).status);
  }
  await signer.stop();
  return statuses;
}

function slashing(region: string, ...args: string[]): ReturnType<typeof runStrongroom> {
  const config = join(deployment.folder, 'strongroom.yaml');
  return runStrongroom(['slashing', ...args, '-c', config], { env: environment(region) });
}

it('moves with a jump, which leaves nothing of what was signed before to be signed again', async () => {
  expect(await signEach('eu-central-1', SIGNED)).toEqual([200, 200]);
  const refused = await slashing('us-west-2', 'status');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('bound to another region') });
  const dry = await slashing('us-west-2', 'jump', '--dry-run');
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('would refuse') });
  expect(await slashing('us-west-2', 'status')).toMatchObject({ code: 1 });

  expect(await slashing('us-west-2', 'jump')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('from now on'),
  });
  expect(await signEach('us-west-2', SLASHABLE)).toEqual([412, 412]);
  expect(await slashing('us-west-2', 'status')).toMatchObject({ code: 0 });
  expect(await slashing('eu-central-1', 'status')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('bound to another region'),
  });
});

it('raises a table that lost a record which this signer knows of, and counts that', async () => {
  const other = deploy(1, { anti_slashing: { backend: 'dynamodb', table: 'lossy' } });
  const publicKey = other.keys[0]?.publicKey ?? '';
  await dynamodb.createTable(tableDefinition('lossy'));
  const signer = await other.start({ env: environment('eu-central-1') });
  expect((await signCall(signer.url, publicKey, block({ slot: 1000 }))).status).toBe(200);
  const client = createDynamoDBClient(dynamoDBClientOptions(dynamodb.endpoint));
  const pk = { S: markPartition({ kind: 'block', publicKey }) };
  await client.send(new DeleteItemCommand({ TableName: 'lossy', Key: { pk } }));
  client.destroy();
  expect((await signCall(signer.url, publicKey, block({ slot: 1001 }))).json['reason']).toBe('slashing_rollback');
  const jumps = async () =>
    /^svc_slashing_jumps_total\{cause="lost_records"\} \d+$/m.exec((await call(signer.metricsUrl)).text)?.[0];
  await expect.poll(jumps).toBe('svc_slashing_jumps_total{cause="lost_records"} 1');
  await signer.stop();
});
