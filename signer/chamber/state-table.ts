// The calls on the signer-state table. When the outcome is unclear, the result is an error, and never a refusal.

import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../common/flow/backoff.ts';
import type { AuthHead, AuthState, AuthWrite } from '../auth/stateful/state.ts';
import {
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  RETRY_PAUSE_MS,
  readBatchOfItems,
  ScanCommand,
  TransactGetItemsCommand,
  type TransactWriteItem,
  transactWrite,
  type WriteOutcome,
} from '../aws/dynamodb.ts';
import { awsFault, faultsAs } from '../aws/errors.ts';
import {
  AUTH_REVISION,
  decodeAuthHead,
  decodeAuthRow,
  decodeLatch,
  decodeMasterKey,
  decodeRootToken,
  encodeAuthHead,
  encodeAuthRow,
  encodeLatch,
  encodeMasterKey,
  encodeRootToken,
  type Latch,
  MASTER_KEY,
  type MasterKeyRow,
  ROOT_TOKEN_BOOTSTRAP,
  type RootTokenRow,
  SEAL_OVERRIDE,
  sealText,
  wholeNumber,
} from './state-rows.ts';

export type BootRows = Awaited<ReturnType<StateTable['readBoot']>>;

/** Where there is a latch the other rows are not looked at: one that cannot be read keeps no replica from sealing. */
export type WatchedRows = Awaited<ReturnType<StateTable['watch']>>;
export type StateTable = ReturnType<typeof stateTable>;

/** Every method throws SignerError `state_stale`; its detail names the fault or the row. */
export function stateTable(client: DynamoDBClient, tableName: string) {
  const put = (item: Item, condition: object = IS_NEW): TransactWriteItem => ({
    Put: { TableName: tableName, Item: item, ...condition },
  });
  const write = (items: readonly TransactWriteItem[]): Promise<WriteOutcome> =>
    reading(() => transactWrite(client, items));
  const authItems = ({ changes, head }: AuthWrite, expectedRevision: number | undefined): TransactWriteItem[] => [
    put(encodeAuthHead(head), stillAtRevision(expectedRevision)),
    ...changes.map((change) =>
      'put' in change
        ? put(encodeAuthRow(change.put), {})
        : { Delete: { TableName: tableName, Key: stateRowKey(change.delete) } },
    ),
  ];

  async function readOne<Row>(pk: string, decode: (item: Item | undefined) => Row): Promise<Row> {
    return reading(async () => {
      const call = new GetItemCommand({ TableName: tableName, Key: stateRowKey(pk), ConsistentRead: true });
      return decode((await client.send(call)).Item);
    });
  }

  const readBatch = async (pks: readonly string[], projection: object = {}) =>
    byPk(
      await readBatchOfItems({ client, tableName, keys: pks.map(stateRowKey), maxRounds: MAX_READ_ROUNDS, projection }),
    );

  async function readSnapshot(pks: readonly string[]): Promise<ReadonlyMap<string, Item>> {
    const TransactItems = pks.map((pk) => ({ Get: { TableName: tableName, Key: stateRowKey(pk) } }));
    const answer = await sendReadTransaction(client, new TransactGetItemsCommand({ TransactItems }));
    assert.equal(answer.Responses?.length, pks.length);
    return byPk(answer.Responses.flatMap(({ Item }) => (Item === undefined ? [] : [Item])));
  }

  const readLatch = () => readOne(SEAL_OVERRIDE, decodeLatch);
  const readHead = () => readOne(AUTH_REVISION, decodeAuthHead);

  return {
    tableName,
    readLatch,
    readHead,
    readMasterKey: () => readOne(MASTER_KEY, decodeMasterKey),

    /** One snapshot: never the middle of another replica's initialisation. */
    readBoot: () =>
      reading(async () => {
        const rows = await readSnapshot(BOOT_ROWS);
        return {
          latch: decodeLatch(rows.get(SEAL_OVERRIDE)),
          masterKey: decodeMasterKey(rows.get(MASTER_KEY)),
          rootToken: decodeRootToken(rows.get(ROOT_TOKEN_BOOTSTRAP)),
          hasAuthHead: rows.has(AUTH_REVISION),
        };
      }),

    isEmpty: () => reading(() => isEmptyTable(client, tableName)),

    watch: () =>
      reading(async () => {
        const rows = await readBatch([SEAL_OVERRIDE, MASTER_KEY, AUTH_REVISION], WATCHED);
        const latch = decodeLatch(rows.get(SEAL_OVERRIDE));
        if (latch !== undefined) return { latch };
        const masterKey = rows.get(MASTER_KEY);
        return {
          latch,
          generation: masterKey && wholeNumber(masterKey, MASTER_KEY, 'generation'),
          authHead: watchedHead(rows.get(AUTH_REVISION)),
        };
      }),

    readTogether: (pks) =>
      reading(async () => {
        const found = await readSnapshot([AUTH_REVISION, ...pks]);
        const head = decodeAuthHead(found.get(AUTH_REVISION));
        const others = [...found].filter(([pk]) => pk !== AUTH_REVISION);
        return { head, rows: others.map(([, item]) => decodeAuthRow(item)) };
      }),

    readRows: (pks) =>
      reading(async () => {
        const found = await readBatch(pks);
        return [...found.values()].map(decodeAuthRow);
      }),

    /** On the condition that there is none of these rows and no latch. */
    initialise: (masterKey: MasterKeyRow, rootToken: RootTokenRow, auth: AuthWrite) =>
      write([
        { ConditionCheck: { TableName: tableName, Key: stateRowKey(SEAL_OVERRIDE), ...IS_NEW } },
        put(encodeMasterKey(masterKey)),
        put(encodeRootToken(rootToken)),
        ...authItems(auth, undefined),
      ]),

    /** On the condition that the row is still `previous`. */
    replaceMasterKey: (previous: MasterKeyRow, next: MasterKeyRow) =>
      write([put(encodeMasterKey(next), stillTheRow(previous))]),

    /** On the condition that there is no ROOT_TOKEN_BOOTSTRAP and the head is still at `expectedRevision`. */
    recreateRootToken: (rootToken: RootTokenRow, expectedRevision: number | undefined, auth: AuthWrite) =>
      write([put(encodeRootToken(rootToken)), ...authItems(auth, expectedRevision)]),

    /** The latch that is there afterwards. MASTER_KEY keeps it too, so that its removal does not pass unseen. */
    async writeLatch(latch: Latch): Promise<Latch> {
      const item = put(encodeLatch(latch));
      const row = await readOne(MASTER_KEY, decodeMasterKey).catch(() => undefined);
      if (row !== undefined) {
        const mark = put(encodeMasterKey({ ...row, seal: sealText(latch) }), stillTheRow(row));
        if ((await write([item, mark])) === 'written') return latch;
      }
      // There is a latch, or no row that could keep it, or a row that changed meanwhile: sealing goes first.
      if ((await write([item])) === 'written') return latch;
      // deleted again within a moment: it was there, so this replica seals
      return (await readLatch()) ?? latch;
    },

    async commit(expectedRevision, changes, head) {
      if ((await write(authItems({ changes, head }, expectedRevision))) === 'written') return 'committed';
      const stored = await readHead();
      return stored?.revision === head.revision && Buffer.from(stored.mac).equals(head.mac) ? 'committed' : 'conflict';
    },
  } satisfies AuthState & Readonly<Record<string, unknown>>;
}

/** A missing code counts as a change: it is not the code that a replica holds. */
function watchedHead(item: Item | undefined): Pick<AuthHead, 'revision' | 'mac'> | undefined {
  if (item === undefined) return undefined;
  return { revision: wholeNumber(item, AUTH_REVISION, 'revision'), mac: item['mac']?.B ?? new Uint8Array() };
}

const BOOT_ROWS = [SEAL_OVERRIDE, MASTER_KEY, ROOT_TOKEN_BOOTSTRAP, AUTH_REVISION];

const IS_NEW = { ConditionExpression: 'attribute_not_exists(pk)' };

const WATCHED = {
  ProjectionExpression: 'pk, generation, #revision, mac, #reason, accessor, sealed_at',
  ExpressionAttributeNames: { '#revision': 'revision', '#reason': 'reason' },
};

function stillAtRevision(revision: number | undefined): object {
  if (revision === undefined) return IS_NEW;
  return {
    ConditionExpression: '#revision = :expected',
    ExpressionAttributeNames: { '#revision': 'revision' },
    ExpressionAttributeValues: { ':expected': { N: String(revision) } },
  };
}

function stillTheRow({ generation, record, seal }: MasterKeyRow): object {
  const sealed = seal === undefined ? 'attribute_not_exists(seal)' : 'seal = :seal';
  return {
    ConditionExpression: `generation = :generation AND #record = :record AND ${sealed}`,
    ExpressionAttributeNames: { '#record': 'record' },
    ExpressionAttributeValues: {
      ...{ ':generation': { N: String(generation) }, ':record': { S: record } },
      ...(seal === undefined ? {} : { ':seal': { S: seal } }),
    },
  };
}

/** Rounds of one batch read while the service leaves rows unprocessed. */
const MAX_READ_ROUNDS = 5;

export function stateRowKey(pk: string): Item {
  return { pk: { S: pk } };
}

function byPk(items: readonly Item[]): ReadonlyMap<string, Item> {
  return new Map(items.map((item) => [item['pk']?.S ?? '', item]));
}

/** Reads until it finds a row: of a table that is empty, that is one call. */
async function isEmptyTable(client: DynamoDBClient, tableName: string): Promise<boolean> {
  let start: Item | undefined;
  do {
    const scan = { TableName: tableName, ConsistentRead: true, Limit: 1, ExclusiveStartKey: start };
    const answer = await client.send(new ScanCommand(scan));
    if ((answer.Items?.length ?? 0) > 0) return false;
    start = answer.LastEvaluatedKey;
  } while (start !== undefined);
  return true;
}

export function reading<T>(read: () => Promise<T>): Promise<T> {
  return faultsAs('state_stale', read);
}

/** The service cancels a read transaction that meets a write to one of its rows: that is no fault. */
async function sendReadTransaction(client: DynamoDBClient, command: TransactGetItemsCommand) {
  for (let tries = 1; ; tries++) {
    try {
      return await client.send(command);
    } catch (error) {
      if (tries === MAX_READ_ROUNDS || awsFault(error) !== 'conflict') throw error;
    }
    await pause(jittered(RETRY_PAUSE_MS * tries));
  }
}
