// A slashing table that is pinned by its ARN: every call names it so, also those that go by its name's batches, and no
// statement is sent, because statements take names. The table server is real; the proxy before it knows ARNs and
// accounts.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseTableArn } from '../../../signer/aws/table-name.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { collect, history, stream, verdictName, vote } from '../../support/slashing.ts';
import { type SlashingTables, startSlashingTables } from '../../support/slashing-dynamodb.ts';
import { startTableProxy, type TableProxy } from '../../support/table-proxy.ts';

const ACCOUNT = '111122223333';
const REGION = 'eu-central-1';
const KEYS = 30;

let tables: SlashingTables;
let proxy: TableProxy;
let arn: string;
const backends: SlashingBackend[] = [];

beforeAll(async () => {
  tables = await startSlashingTables();
  proxy = await startTableProxy(tables.server.endpoint, {
    region: REGION,
    serverAccount: ACCOUNT,
    accountOf: (accessKeyId) => (accessKeyId === 'test' ? ACCOUNT : '999988887777'),
  });
  arn = `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${await tables.create()}`;
});
afterAll(async () => {
  for (const backend of backends) await backend.close();
  await proxy?.close();
  await tables?.close();
});

async function open(table = arn, client = {}): Promise<SlashingBackend> {
  const backend = await tables.open(table, { endpoint: proxy.endpoint, client });
  backends.push(backend);
  return backend;
}

async function votesOf(backend: SlashingBackend, target: number, root: string): Promise<string[]> {
  const messages = Array.from({ length: KEYS }, (_, key) => vote(key, target - 1, target, root));
  const verdicts = await backend.checkAndRecord(messages, []);
  return [...new Set(verdicts.map(verdictName))];
}

it('records, refuses, imports, exports and jumps by its ARN alone', async () => {
  const backend = await open();
  for (const target of [2, 3, 4]) expect(await votesOf(backend, target, 'one')).toEqual(['safe']);
  const another = await open();
  expect(await votesOf(another, 4, 'other')).toEqual(['double_vote']);
  const imported = Array.from({ length: KEYS }, (_, key) => history(key, [], [[8, 9, null]]));
  await backend.importHistories(stream(imported));
  expect(await collect(backend.exportHistories())).toHaveLength(KEYS);
  await backend.jump({ slot: 640, sourceEpoch: 19, targetEpoch: 20 });

  const named = proxy.calls.flatMap((call) => call.tables);
  expect(named.filter((table) => parseTableArn(table)?.account !== ACCOUNT)).toEqual([]);
  const operations = new Set(proxy.calls.map(({ operation }) => operation));
  expect(operations).toContain('BatchGetItem');
  expect(operations).not.toContain('BatchExecuteStatement');
});

it('is not opened with the credentials of another account', async () => {
  const client = { credentials: { accessKeyId: 'stranger', secretAccessKey: 'test' } };
  await expect(open(arn, client)).rejects.toThrow();
  expect(proxy.calls.at(-1)).toMatchObject({ accessKeyId: 'stranger', tables: [arn] });
});

it('the same table by its name takes statements: what by ARN is not sent would be', async () => {
  const before = proxy.calls.length;
  const backend = await open(await tables.create());
  for (const target of [2, 3]) await votesOf(backend, target, 'one');
  expect(proxy.calls.slice(before).map(({ operation }) => operation)).toContain('BatchExecuteStatement');
});
