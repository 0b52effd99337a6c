// A state table behind a proxy that loses answers, and one replica on it, both new for every test, with policies and
// tokens to change. All keys are TEST keys.

import { afterAll, beforeAll, beforeEach } from 'vitest';
import { dynamoDBClientOptions } from '../../../rehearsal/dynamodb.ts';
import type { Policy } from '../../../signer/api/policy.ts';
import { policiesOf } from '../../../signer/auth/stateful/snapshot.ts';
import { issueToken } from '../../../signer/auth/stateful/tokens.ts';
import type { AwsClientOptions } from '../../../signer/aws/client.ts';
import { createDynamoDBClient } from '../../../signer/aws/dynamodb.ts';
import { type StateTable, stateTable } from '../../../signer/chamber/state-table.ts';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.ts';
import { PATIENT } from '../../support/patience.ts';
import {
  type AuthReplica,
  type AuthServer,
  type AuthTable,
  openAuthReplica,
  startAuthServer,
} from '../../support/stateful-auth.ts';

let server: AuthServer;
export let proxy: FaultProxy;
export let table: AuthTable;
export let replica: AuthReplica;
export let root: string;

beforeAll(async () => {
  server = await startAuthServer();
  proxy = await startFaultProxy(server.endpoint);
});
afterAll(async () => {
  await proxy.close();
  await server.close();
});
beforeEach(async () => {
  proxy.setRule(undefined);
  table = await server.createTable();
  replica = await openAuthReplica(table);
  const outcome = replica.authenticate(table.rootToken);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  root = outcome.caller.accessor;
});

export function policy(name: string, effect: 'allow' | 'deny' = 'allow'): Policy {
  return { name, rules: [{ effect }] };
}

export function issue({ auth }: AuthReplica) {
  return issueToken(auth, root, { policies: [], bound_cidrs: [], management: true, ttl_seconds: 1000 });
}

export async function issueClient({ auth }: AuthReplica, policies: string[]): Promise<string> {
  const outcome = await issueToken(auth, root, { policies, bound_cidrs: [], management: false, ttl_seconds: 1000 });
  if (outcome.kind === 'refused') throw new Error(outcome.hint);
  return outcome.answer.accessor;
}

export async function names({ auth }: AuthReplica): Promise<string[]> {
  await auth.refresh();
  return policiesOf(auth.snapshot).map(({ name }) => name);
}

export function stateWith(changes: Partial<StateTable>): StateTable {
  return { ...table.state, ...changes };
}

/** The state through the fault proxy. */
export function throughProxy(patience: AwsClientOptions = PATIENT): StateTable & Disposable {
  const client = createDynamoDBClient(dynamoDBClientOptions(proxy.endpoint, patience));
  return { ...stateTable(client, table.state.tableName), [Symbol.dispose]: () => client.destroy() };
}
