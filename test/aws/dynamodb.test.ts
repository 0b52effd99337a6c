// The AWS client against a real server and a proxy that breaks things: bounded waits, bounded attempts, bounded
// sockets, and what each error means.

import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamoDBServer, dynamoDBClientOptions, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { AwsClientOptions } from '../../signer/aws/client.ts';
import {
  createDynamoDBClient,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '../../signer/aws/dynamodb.ts';
import { awsFault } from '../../signer/aws/errors.ts';
import { FAULTS, type FaultName, type FaultProxy, faultTimes, startFaultProxy } from '../support/fault-proxy.ts';
import { ownAddress } from '../support/own-address.ts';
import { GIVES_UP, PATIENT } from '../support/patience.ts';

const TABLE = 'things';
const key = { pk: { S: 'one' } };

let server: DynamoDBServer;
let proxy: FaultProxy;

beforeAll(async () => {
  server = await startDynamoDB();
  await server.createTable({
    TableName: TABLE,
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  proxy = await startFaultProxy(server.endpoint);
});

afterAll(async () => {
  await proxy?.close();
  await server?.close();
});

async function withClient<T>(options: AwsClientOptions, use: (client: DynamoDBClient) => Promise<T>): Promise<T> {
  const client = createDynamoDBClient(dynamoDBClientOptions(proxy.endpoint, { ...PATIENT, ...options }));
  try {
    return await use(client);
  } finally {
    client.destroy();
    proxy.setRule(undefined);
  }
}

const get = new GetItemCommand({ TableName: TABLE, Key: key, ConsistentRead: true });
const putNew = new PutItemCommand({
  TableName: TABLE,
  Item: key,
  ConditionExpression: 'attribute_not_exists(pk)',
  ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
});

async function faultOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'none',
    (error: unknown) => awsFault(error),
  );
}

describe('attempts are bounded', () => {
  const transient: FaultName[] = [
    'internalError',
    'internalErrorAfterApplying',
    'unavailable',
    'provisionedThroughputExceeded',
    'throttled',
    'resetBefore',
    'resetAfter',
    'dropAnswer',
  ];
  it.each(transient)('a call survives %s once', (name) =>
    withClient({}, async (client) => {
      proxy.setRule(faultTimes(1, FAULTS[name]));
      const before = proxy.requests;
      await client.send(get);
      expect(proxy.requests - before).toBe(2);
    }),
  );

  it.each(transient)('a call gives up on %s after the attempts it has', (name) =>
    withClient({ maxAttempts: 2 }, async (client) => {
      proxy.setRule(() => FAULTS[name]);
      const before = proxy.requests;
      const expected = /Throughput|throttled/.test(name) ? 'throttled' : 'unreachable';
      expect(await faultOf(client.send(get))).toBe(expected);
      expect(proxy.requests - before).toBe(2);
    }),
  );
});

describe('waits are bounded', () => {
  it('a service that never answers is given up', () =>
    withClient({ ...GIVES_UP, maxAttempts: 2 }, async (client) => {
      proxy.setRule(() => FAULTS.hang);
      const before = proxy.requests;
      expect(await faultOf(client.send(get))).toBe('unreachable');
      expect(proxy.requests - before).toBe(2);
    }));

  it('an answer that stalls in the middle is given up', async () => {
    const stalling = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-amz-json-1.0', 'content-length': 100 });
      response.write('{');
    });
    const client = createDynamoDBClient(
      dynamoDBClientOptions(await listen(stalling), { requestTimeoutMs: 50, maxAttempts: 1 }),
    );
    expect(await faultOf(client.send(get))).toBe('unreachable');
    client.destroy();
    await stop(stalling);
  });

  it('a service that is not there is given up', async () => {
    const gone = createServer();
    const endpoint = await listen(gone, ownAddress(2));
    await stop(gone);
    const client = createDynamoDBClient(dynamoDBClientOptions(endpoint, { maxAttempts: 2 }));
    expect(await faultOf(client.send(get))).toBe('unreachable');
    client.destroy();
  });
});

it('connections are kept and never more than the limit', async () => {
  let connections = 0;
  const counting = createServer((_request, response) => response.end('{}'));
  counting.on('connection', () => (connections += 1));
  const client = createDynamoDBClient(dynamoDBClientOptions(await listen(counting), { maxSockets: 3 }));
  for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 20 }, () => client.send(get)));
  expect(connections).toBe(3);
  client.destroy();
  await stop(counting);
});

describe('what an error means', () => {
  it('a condition that fails comes with the item that is there', () =>
    withClient({}, async (client) => {
      await client.send(putNew);
      const error = await client.send(putNew).catch((thrown: unknown) => thrown);
      expect(awsFault(error)).toBe('condition_failed');
      expect((error as { Item?: unknown }).Item).toEqual(key);
    }));

  it('a missing table, a denied caller and a conflict are told apart', () =>
    withClient({ maxAttempts: 1 }, async (client) => {
      expect(await faultOf(client.send(new DescribeTableCommand({ TableName: 'absent' })))).toBe('not_found');
      proxy.setRule(() => FAULTS.accessDenied);
      expect(await faultOf(client.send(get))).toBe('denied');
      proxy.setRule(() => FAULTS.transactionConflict);
      expect(await faultOf(client.send(get))).toBe('conflict');
      proxy.setRule(() => ({ kind: 'error', status: 400, name: 'ConstructorException' }));
      expect(await faultOf(client.send(get))).toBe('failed');
    }));

  it.each([
    [['None', 'ConditionalCheckFailed'], 'condition_failed'],
    [['TransactionConflict', 'ConditionalCheckFailed'], 'condition_failed'],
    [['ThrottlingError', 'TransactionConflict'], 'conflict'],
    [['ProvisionedThroughputExceeded', 'None'], 'throttled'],
    [['ValidationError'], 'failed'],
    [[], 'failed'],
  ])('a transaction cancelled for %j is %s', (codes, fault) => {
    const CancellationReasons = codes.map((Code) => ({ Code }));
    expect(awsFault(Object.assign(new Error(), { name: 'TransactionCanceledException', CancellationReasons }))).toBe(
      fault,
    );
  });
});

it('every call is reported once, with its outcome, whatever its retries', () => {
  const calls: string[] = [];
  const onCall = (operation: string, outcome: string) => calls.push(`${operation} ${outcome}`);
  return withClient({ onCall, maxAttempts: 2 }, async (client) => {
    proxy.setRule(faultTimes(1, FAULTS.internalError));
    await client.send(get);
    await faultOf(client.send(putNew));
    proxy.setRule(() => FAULTS.resetBefore);
    await faultOf(client.send(get));
    expect(calls).toEqual(['GetItem ok', 'PutItem condition_failed', 'GetItem unreachable']);
  });
});

async function listen(listener: Server, host = '127.0.0.1'): Promise<string> {
  await new Promise<void>((resolve) => listener.listen(0, host, resolve));
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return `http://${host}:${address.port}`;
}

async function stop(listener: Server): Promise<void> {
  listener.closeAllConnections();
  await new Promise((resolve) => listener.close(resolve));
}
