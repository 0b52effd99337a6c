// `strongroom setup tables` as a person runs it, against a real table server.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { CUSTODY_REGION, type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { createDynamoDBClient, DescribeTableCommand } from '../../signer/aws/dynamodb.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { startTableProxy } from '../support/table-proxy.ts';

let world: CustodyWorld;
let folder: string;

beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-setup-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await world.close();
});

const UNKNOWN_BACKUPS = 'this service does not offer point-in-time recovery';

/** DynamoDB with backups: a stand-in for what the stand-in does not know. */
async function withBackups(status: 'ENABLED' | 'DISABLED') {
  const proxy = await startFaultProxy(world.dynamodb.endpoint);
  const turnedOn: string[] = [];
  const described = { PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus: status } };
  const answer = { kind: 'answer', body: JSON.stringify({ ContinuousBackupsDescription: described }) } as const;
  proxy.setRule(({ operation, body }) => {
    if (operation === 'UpdateContinuousBackups') turnedOn.push(body);
    return operation.endsWith('ContinuousBackups') ? answer : undefined;
  });
  return { proxy, turnedOn, environment: world.environment({ dynamodb: proxy.endpoint }) };
}

/** Only the state table: `keys/table-setup` and the backends' tests set up the others. */
function configuration(table: string) {
  return { ...world.configuration(table, world.createCeremony()), anti_slashing: {} };
}

function setup(table: string, ...args: string[]) {
  const file = join(folder, `${table}.yaml`);
  writeFileSync(file, stringify(configuration(table), { aliasDuplicateObjects: false }));
  return runStrongroom(['setup', 'tables', '-c', file, ...args], { env: world.environment() });
}

it('creates the table with deletion protection; a second time it says that it exists', async () => {
  const first = await setup('made');
  expect(first).toMatchObject({ code: 0, stdout: 'made: created\n' });
  expect(first.stderr).toContain(UNKNOWN_BACKUPS);
  const client = createDynamoDBClient(dynamoDBClientOptions(world.dynamodb.endpoint));
  const { Table } = await client.send(new DescribeTableCommand({ TableName: 'made' }));
  client.destroy();
  expect(Table).toMatchObject({
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' },
    DeletionProtectionEnabled: true,
  });
  expect(await setup('made')).toMatchObject({ code: 0, stdout: 'made: exists\n' });
});

it('says what an existing table lacks and alters nothing', async () => {
  await world.dynamodb.createTable({
    TableName: 'bare',
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  for (let time = 0; time < 2; time++) {
    const { code, stdout, stderr } = await setup('bare');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'bare: exists\n' });
    expect(stderr).toContain('warning: table bare: deletion protection is off');
    expect(stderr).toContain(`warning: table bare: ${UNKNOWN_BACKUPS}`);
  }
});

it('turns point-in-time recovery on for a table it creates, and only looks at it on one that exists', async () => {
  const { proxy, turnedOn, environment } = await withBackups('DISABLED');
  const file = join(folder, 'backed-up.yaml');
  const config = configuration('backed-up');
  writeFileSync(file, stringify(config, { aliasDuplicateObjects: false }));
  const run = () => runStrongroom(['setup', 'tables', '-c', file], { env: environment });
  expect(await run()).toMatchObject({ code: 0, stdout: 'backed-up: created\n', stderr: '' });
  expect(turnedOn.map((body) => JSON.parse(body))).toEqual([
    { TableName: 'backed-up', PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true } },
  ]);
  const second = await run();
  expect(second.stderr).toContain('warning: table backed-up: point-in-time recovery is off');
  expect(turnedOn).toHaveLength(1);
  await proxy.close();
});

it('a table with another primary key cannot be used: exit 1', async () => {
  await world.dynamodb.createTable({
    TableName: 'other',
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  const { code, stderr } = await setup('other');
  expect(code).toBe(1);
  expect(stderr).toContain('table other cannot be used: its primary key is not');
});

it('--print writes the definitions as JSON and creates nothing', async () => {
  const { code, stdout } = await setup('printed', '--print');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    tables: [
      {
        create: {
          TableName: 'printed',
          AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
          KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
          BillingMode: 'PAY_PER_REQUEST',
          DeletionProtectionEnabled: true,
        },
        continuous_backups: {
          TableName: 'printed',
          PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        },
      },
    ],
  });
  expect(await setup('printed')).toMatchObject({ stdout: 'printed: created\n' });
});

it('without a table in the configuration, without a configuration, with an unknown flag: exit 1', async () => {
  const file = join(folder, 'none.yaml');
  writeFileSync(file, 'network: mainnet\n');
  expect(await runStrongroom(['setup', 'tables', '-c', file])).toMatchObject({ code: 1 });
  expect(await runStrongroom(['setup', 'tables'])).toMatchObject({ code: 1 });
  expect(await runStrongroom(['setup', 'tables', '-c', file, '--prin'])).toMatchObject({ code: 1 });
  expect(await runStrongroom(['setup', 'chairs'])).toMatchObject({ code: 1 });
  expect(await runStrongroom(['setup', '--help'])).toMatchObject({ code: 0, stderr: '' });
});

it.each([
  ['a service that does not answer', { AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1' }, /ECONNREFUSED/, /AWS_REGION/],
  ['no credentials', { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }, /CredentialsProviderError/, /--for setup/],
  ['no region', { AWS_REGION: '' }, /Region not accepted/, /export AWS_REGION/],
])('%s: says which table, and what to do', async (_, changes, problem, advice) => {
  const file = join(folder, 'unreached.yaml');
  writeFileSync(file, stringify(configuration('unreached'), { aliasDuplicateObjects: false }));
  const unread = { AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null', AWS_MAX_ATTEMPTS: '1' };
  const env = { ...world.environment(), ...unread, ...changes };
  const { code, stdout, stderr } = await runStrongroom(['setup', 'tables', '-c', file], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  const [said, hint, end] = stderr.split('\n');
  expect(said).toMatch(/^strongroom: the table unreached could not be set up: /);
  expect(said).toMatch(problem);
  expect(hint).toMatch(advice);
  expect(end).toBe('');
});

describe('a table that is named by its ARN', () => {
  const ACCOUNT = '111122223333';
  const arnOf = (table: string, region = CUSTODY_REGION) => `arn:aws:dynamodb:${region}:${ACCOUNT}:table/${table}`;

  /** @param account of the credentials, which do not say it */
  async function setUp(table: string, members: { env?: object; account?: string; args?: readonly string[] } = {}) {
    const { account = ACCOUNT, env = {}, args = [] } = members;
    const proxy = await startTableProxy(world.dynamodb.endpoint, {
      region: CUSTODY_REGION,
      serverAccount: account,
      accountOf: () => account,
      foreign: 'ResourceNotFoundException',
    });
    const file = join(folder, 'pinned.yaml');
    writeFileSync(file, stringify(configuration(table), { aliasDuplicateObjects: false }));
    const environment = { ...world.environment({ dynamodb: proxy.endpoint }), ...env };
    const ran = await runStrongroom(['setup', 'tables', '-c', file, ...args], { env: environment });
    await proxy.close();
    return { ...ran, operations: proxy.calls.map(({ operation }) => operation) };
  }

  it('is made by its name, and found by its ARN', async () => {
    expect(await setUp(arnOf('pinned'))).toMatchObject({ code: 0, stdout: `${arnOf('pinned')}: created\n` });
    expect(await setUp(arnOf('pinned'))).toMatchObject({ code: 0, stdout: `${arnOf('pinned')}: exists\n` });
    const { stdout } = await setUp(arnOf('pinned'), { args: ['--print'] });
    expect(JSON.parse(stdout).tables[0].create.TableName).toBe('pinned');
  });

  it('is not made in another region or account than the caller’s: nothing is asked', async () => {
    const otherRegion = await setUp(arnOf('elsewhere', 'us-east-1'));
    expect(otherRegion).toMatchObject({ code: 1, operations: [] });
    expect(otherRegion.stderr).toContain(`is of another region than ${CUSTODY_REGION}`);
    const otherAccount = await setUp(arnOf('elsewhere'), { env: { AWS_ACCOUNT_ID: '999988887777' } });
    expect(otherAccount).toMatchObject({ code: 1, operations: [] });
    expect(otherAccount.stderr).toContain('is of another account than 999988887777');
  });

  it('is told from one that was made in another account, where the credentials do not say theirs', async () => {
    const { code, stderr } = await setUp(arnOf('strayed'), { account: '999988887777' });
    expect(code).toBe(1);
    expect(stderr).toContain(`made as ${arnOf('strayed').replace(ACCOUNT, '999988887777')}`);
  });
});
