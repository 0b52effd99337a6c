// The stateful mode on a real state table: a table server, a table whose root token is known, and replicas that hold
// the same sub-keys. Whoever attacks the table in a test writes its rows as items, without any key. All keys are TEST
// keys.

import { afterAll, beforeAll } from 'vitest';
import type { Clock } from '../../common/observe/clock.ts';
import { dynamoDBClientOptions, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { Authentication } from '../../signer/auth/authenticator.ts';
import type { HeadProblem } from '../../signer/auth/stateful/load.ts';
import { kindOf, type RowKind } from '../../signer/auth/stateful/rows.ts';
import type { AuthHead, AuthKeys, AuthRow } from '../../signer/auth/stateful/state.ts';
import { StatefulAuthenticator } from '../../signer/auth/stateful/stateful.ts';
import { createToken } from '../../signer/auth/tokens.ts';
import {
  createDynamoDBClient,
  DeleteItemCommand,
  type DynamoDBClient,
  PutItemCommand,
  ScanCommand,
} from '../../signer/aws/dynamodb.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { replaceRootToken } from '../../signer/boot/custody.ts';
import { AUTH_REVISION, decodeAuthRow, encodeAuthHead, encodeAuthRow } from '../../signer/chamber/state-rows.ts';
import { type StateTable, stateTable } from '../../signer/chamber/state-table.ts';
import { recordingLog } from './recording-log.ts';

/** Both moments move together, and only when a test says so. */
export interface TestClock extends Clock {
  advance(seconds: number): void;
}

export const START = Date.parse('2026-01-01T00:00:00.000Z');

export function testClock(): TestClock {
  let elapsedMs = 0;
  return {
    now: () => START + elapsedMs,
    monotonic: () => elapsedMs,
    advance(seconds) {
      elapsedMs += seconds * 1000;
    },
  };
}

/** A fresh copy for each replica, which wipes its own. */
export function testKeys(): AuthKeys {
  return { rows: Buffer.alloc(32, 0x51), tokens: Buffer.alloc(32, 0x52) };
}

export interface AuthTable {
  readonly state: StateTable;
  readonly rootToken: string;
  rows(): Promise<readonly AuthRow[]>;
  row(pk: string): Promise<AuthRow>;
  head(): Promise<AuthHead>;
  /** What anybody who can write the table can do. */
  putRow(row: AuthRow): Promise<void>;
  deleteRow(pk: string): Promise<void>;
  putHead(head: AuthHead): Promise<void>;
}

export interface AuthServer {
  readonly endpoint: string;
  /** A fresh state table that was initialised. */
  createTable(): Promise<AuthTable>;
  close(): Promise<void>;
}

/** One for all tests of a file; each makes the tables that it needs. */
export function authServerOfFile(): Pick<AuthServer, 'createTable'> {
  let server: AuthServer;
  beforeAll(async () => {
    server = await startAuthServer();
  });
  afterAll(() => server.close());
  return { createTable: () => server.createTable() };
}

export async function startAuthServer(): Promise<AuthServer> {
  const server = await startDynamoDB();
  const client = createDynamoDBClient(dynamoDBClientOptions(server.endpoint));
  let tables = 0;
  return {
    endpoint: server.endpoint,
    async createTable() {
      tables += 1;
      const name = `state-${tables}`;
      await server.createTable(tableDefinition(name));
      return authTable(client, name);
    },
    async close() {
      client.destroy();
      await server.close();
    },
  };
}

async function authTable(client: DynamoDBClient, name: string): Promise<AuthTable> {
  const state = stateTable(client, name);
  const token = createToken('management');
  const { changes, head } = replaceRootToken(testKeys(), undefined, token, START);
  await state.commit(undefined, changes, head);
  const put = async (item: ReturnType<typeof encodeAuthRow>): Promise<void> => {
    await client.send(new PutItemCommand({ TableName: name, Item: item }));
  };
  const rows = async (): Promise<AuthRow[]> => {
    const { Items = [] } = await client.send(new ScanCommand({ TableName: name, ConsistentRead: true }));
    return Items.map(decodeAuthRow).filter(({ pk }) => kindOf(pk) !== undefined);
  };
  return {
    state,
    rootToken: token.toString('ascii'),
    rows,
    async row(pk) {
      const row = (await rows()).find((candidate) => candidate.pk === pk);
      if (row === undefined) throw new Error(`there is no row ${pk}`);
      return row;
    },
    async head() {
      const stored = await state.readHead();
      if (stored === undefined) throw new Error(`there is no row ${AUTH_REVISION}`);
      return stored;
    },
    putRow: (row) => put(encodeAuthRow(row)),
    putHead: (stored) => put(encodeAuthHead(stored)),
    async deleteRow(pk) {
      await client.send(new DeleteItemCommand({ TableName: name, Key: { pk: { S: pk } } }));
    },
  };
}

export interface AuthReplica {
  readonly auth: StatefulAuthenticator;
  readonly clock: TestClock;
  readonly log: ReturnType<typeof recordingLog>;
  readonly rejectedRows: readonly RowKind[];
  readonly rejectedHeads: readonly HeadProblem[];
  /** From 127.0.0.1 unless another peer is given. */
  authenticate(token: string, peerAddress?: string): Authentication;
}

export interface AuthReplicaOptions {
  readonly clock?: TestClock;
  /** Instead of the table's own: through a proxy, say. */
  readonly state?: StateTable;
  /** Read the table at once; true unless said otherwise. */
  readonly refreshed?: boolean;
}

export async function openAuthReplica(table: AuthTable, options: AuthReplicaOptions = {}): Promise<AuthReplica> {
  const clock = options.clock ?? testClock();
  const log = recordingLog();
  const rejectedRows: RowKind[] = [];
  const rejectedHeads: HeadProblem[] = [];
  const auth = new StatefulAuthenticator(testKeys(), {
    state: options.state ?? table.state,
    clock,
    log,
    onRowRejected: (row) => rejectedRows.push(row),
    onHeadRejected: (problem) => rejectedHeads.push(problem),
  });
  if (options.refreshed !== false) await auth.refresh();
  return {
    auth,
    clock,
    log,
    rejectedRows,
    rejectedHeads,
    authenticate: (token, peerAddress = '127.0.0.1') =>
      auth.authenticate({ kind: 'token', token: Buffer.from(token) }, peerAddress),
  };
}
