// The calls on the signer-state table: strongly consistent reads and conditional transactions, nothing else. Reads are
// complete or fail: a row that was not answered is never taken for one that is not there. Writes say whether their
// condition held; what is unclear after all attempts is an error, never a refusal.

import { type DynamoDBClient, GetItemCommand, type TransactWriteItem } from '../aws/dynamodb.ts';
import type { WriteOutcome } from '../aws/dynamodb-transact.ts';
import {
  AUTH_REVISION,
  type AuthHead,
  type AuthRow,
  decodeAuthHead,
  decodeAuthRow,
  decodeMasterKey,
  decodeSealOverride,
  encodeAuthHead,
  encodeAuthRow,
  encodeMasterKey,
  encodeRootToken,
  encodeSealOverride,
  type Item,
  MASTER_KEY,
  type MasterKeyRow,
  ROOT_TOKEN_BOOTSTRAP,
  type RootTokenRow,
  SEAL_OVERRIDE,
  type SealOverride,
  wholeNumber,
} from './state-rows.ts';
import { isEmptyTable, keyOf, readBatch, reading, readSnapshot, transact } from './table-calls.ts';

export type AuthChange = { readonly put: AuthRow } | { readonly delete: string };

export interface AuthWrite {
  readonly changes: readonly AuthChange[];
  readonly head: AuthHead;
}

export interface BootRows {
  readonly sealOverride: SealOverride | undefined;
  readonly masterKey: MasterKeyRow | undefined;
  readonly hasRootToken: boolean;
  readonly hasAuthHead: boolean;
}

/** Beside a latch nothing else counts, nor is it looked at: a row that cannot be read keeps nobody from sealing. */
export type WatchedRows =
  | { readonly sealOverride: SealOverride }
  | {
      readonly sealOverride: undefined;
      /** Undefined when the row is gone. */
      readonly generation: number | undefined;
      readonly authHead: Pick<AuthHead, 'revision' | 'mac'> | undefined;
    };

/**
 * Every method throws SignerError `state_stale` when the table cannot be used; its detail names the fault or the row.
 */
export interface StateTable {
  readonly tableName: string;
  /** One snapshot: never the middle of another replica's initialisation. */
  readBoot(): Promise<BootRows>;
  /** Whether there is no row of any name. */
  isEmpty(): Promise<boolean>;
  watch(): Promise<WatchedRows>;
  readSealOverride(): Promise<SealOverride | undefined>;
  readMasterKey(): Promise<MasterKeyRow | undefined>;
  readHead(): Promise<AuthHead | undefined>;
  /** auth's AuthState: of these pks, 100 at most, those that are there. */
  readRows(pks: readonly string[]): Promise<readonly AuthRow[]>;
  /**
   * auth's AuthState: the head and these rows from one moment, so that a table that is being written reads
   * consistently.
   */
  readTogether(
    pks: readonly string[],
  ): Promise<{ readonly head: AuthHead | undefined; readonly rows: readonly AuthRow[] }>;
  /**
   * MASTER_KEY, ROOT_TOKEN_BOOTSTRAP and the first auth rows, on the condition that there is none of them and no latch.
   */
  initialise(masterKey: MasterKeyRow, rootToken: RootTokenRow, auth: AuthWrite): Promise<WriteOutcome>;
  /** On the condition that the row is still `previous`. */
  replaceMasterKey(previous: MasterKeyRow, next: MasterKeyRow): Promise<WriteOutcome>;
  /** On the condition that there is no ROOT_TOKEN_BOOTSTRAP and the head is still at `expectedRevision`. */
  recreateRootToken(
    rootToken: RootTokenRow,
    expectedRevision: number | undefined,
    auth: AuthWrite,
  ): Promise<WriteOutcome>;
  /** The latch that is there afterwards: this one, or the one that was there first. */
  writeSealOverride(override: SealOverride): Promise<SealOverride>;
  /** auth's AuthState: one transaction, on the condition that the head is still at `expectedRevision`. */
  commit(
    expectedRevision: number | undefined,
    changes: readonly AuthChange[],
    head: AuthHead,
  ): Promise<'committed' | 'conflict'>;
}

export function stateTable(client: DynamoDBClient, tableName: string): StateTable {
  const put = (item: Item, condition: object = IS_NEW): TransactWriteItem => ({
    Put: { TableName: tableName, Item: item, ...condition },
  });
  const write = (items: readonly TransactWriteItem[]): Promise<WriteOutcome> => transact(client, items);
  const authItems = ({ changes, head }: AuthWrite, expectedRevision: number | undefined): TransactWriteItem[] => [
    put(encodeAuthHead(head), stillAtRevision(expectedRevision)),
    ...changes.map((change) =>
      'put' in change
        ? put(encodeAuthRow(change.put), {})
        : { Delete: { TableName: tableName, Key: keyOf(change.delete) } },
    ),
  ];

  async function readOne<Row>(pk: string, decode: (item: Item | undefined) => Row): Promise<Row> {
    return reading(async () => {
      const call = new GetItemCommand({ TableName: tableName, Key: keyOf(pk), ConsistentRead: true });
      return decode((await client.send(call)).Item);
    });
  }

  const readSealOverride = () => readOne(SEAL_OVERRIDE, decodeSealOverride);
  const readHead = () => readOne(AUTH_REVISION, decodeAuthHead);

  return {
    tableName,
    readSealOverride,
    readHead,
    readMasterKey: () => readOne(MASTER_KEY, decodeMasterKey),

    readBoot: () =>
      reading(async () => {
        const rows = await readSnapshot(client, tableName, BOOT_ROWS);
        return {
          sealOverride: decodeSealOverride(rows.get(SEAL_OVERRIDE)),
          masterKey: decodeMasterKey(rows.get(MASTER_KEY)),
          hasRootToken: rows.has(ROOT_TOKEN_BOOTSTRAP),
          hasAuthHead: rows.has(AUTH_REVISION),
        };
      }),

    isEmpty: () => reading(() => isEmptyTable(client, tableName)),

    watch: () =>
      reading(async () => {
        const rows = await readBatch(client, tableName, [SEAL_OVERRIDE, MASTER_KEY, AUTH_REVISION], WATCHED);
        const sealOverride = decodeSealOverride(rows.get(SEAL_OVERRIDE));
        if (sealOverride !== undefined) return { sealOverride };
        const masterKey = rows.get(MASTER_KEY);
        return {
          sealOverride,
          generation: masterKey && wholeNumber(masterKey, MASTER_KEY, 'generation'),
          authHead: watchedHead(rows.get(AUTH_REVISION)),
        };
      }),

    readTogether: (pks) =>
      reading(async () => {
        const found = await readSnapshot(client, tableName, [AUTH_REVISION, ...pks]);
        const head = decodeAuthHead(found.get(AUTH_REVISION));
        const others = [...found].filter(([pk]) => pk !== AUTH_REVISION);
        return { head, rows: others.map(([, item]) => decodeAuthRow(item)) };
      }),

    readRows: (pks) =>
      reading(async () => {
        const found = await readBatch(client, tableName, pks);
        return [...found.values()].map(decodeAuthRow);
      }),

    initialise: (masterKey, rootToken, auth) =>
      write([
        { ConditionCheck: { TableName: tableName, Key: keyOf(SEAL_OVERRIDE), ...IS_NEW } },
        put(encodeMasterKey(masterKey)),
        put(encodeRootToken(rootToken)),
        ...authItems(auth, undefined),
      ]),

    replaceMasterKey: (previous, next) => write([put(encodeMasterKey(next), stillTheRecord(previous))]),

    recreateRootToken: (rootToken, expectedRevision, auth) =>
      write([put(encodeRootToken(rootToken)), ...authItems(auth, expectedRevision)]),

    async writeSealOverride(override) {
      const outcome = await write([put(encodeSealOverride(override))]);
      if (outcome === 'written') return override;
      // deleted again within a moment: it was there, so this replica seals
      return (await readSealOverride()) ?? override;
    },

    async commit(expectedRevision, changes, head) {
      if ((await write(authItems({ changes, head }, expectedRevision))) === 'written') return 'committed';
      const stored = await readHead();
      return stored?.revision === head.revision && Buffer.from(stored.mac).equals(head.mac) ? 'committed' : 'conflict';
    },
  };
}

/** A code that is not there is not the one that a replica holds. */
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

function stillTheRecord({ generation, record }: MasterKeyRow): object {
  return {
    ConditionExpression: 'generation = :generation AND #record = :record',
    ExpressionAttributeNames: { '#record': 'record' },
    ExpressionAttributeValues: { ':generation': { N: String(generation) }, ':record': { S: record } },
  };
}
