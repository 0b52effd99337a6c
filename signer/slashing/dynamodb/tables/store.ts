// Reads and changes the record of a slashing table. Every change compares and swaps, so exactly one signer makes it. A
// floor that was read is never forgotten, and a record of another store or region stops all checks.

import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../../../common/flow/backoff.ts';
import { oneAfterTheOther } from '../../../../common/flow/turns.ts';
import type { Log } from '../../../../common/observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import {
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  onAnswerDate,
  PutItemCommand,
  ScanCommand,
  type TransactWriteItem,
} from '../../../aws/dynamodb.ts';
import { awsFault } from '../../../aws/errors.ts';
import { higherMarks } from '../../history/head.ts';
import { coversFloor } from '../../history/rules.ts';
import { NEW_STORE, NO_INCARNATION, STORE_ID_BYTES } from '../../incarnation.ts';
import { lowerOf } from '../../jump.ts';
import type { StoreFloor } from '../../types.ts';
import { NETWORK_PARTITION } from './items.ts';
import {
  type DynamoStoreRecord,
  decodeRecord,
  encodeRecord,
  isStillBound,
  isStillRecord,
  type RecordBinding,
  unusableTable,
} from './record.ts';
import { unavailable } from './table.ts';

const MAX_CHANGE_ATTEMPTS = 64;
const CHANGE_PAUSE_MS = 4;
const MAX_CHANGE_PAUSE_MS = 200;

export interface RegionBinding extends RecordBinding {
  readonly region: string;
  /**
   * Open also a store bound to another region, or without its record: nothing is checked or written before a jump has
   * bound it here.
   */
  readonly isForJump?: boolean | undefined;
}

export async function openStore(client: DynamoDBClient, binding: RegionBinding, log: Log): Promise<Store> {
  const explain = (error: unknown) => startFault(error, binding.tableName);
  const replication = await replicationOf(client, binding.tableName).catch(explain);
  const store = new Store(client, binding);
  const found = await store.find().catch(explain);
  const bound = found?.reading.region;
  if (replication !== 'none') checkReplication(replication, bound, binding.tableName);
  if (replication !== 'none') log.warn({ table: binding.tableName, region: bound }, HAS_REPLICAS);
  await store.bind(found).catch(explain);
  if (found === undefined && binding.isForJump !== true) log.warn({ table: binding.tableName }, NEW_STORE);
  return store;
}

interface StoredRecord {
  readonly item: Item;
  readonly reading: DynamoStoreRecord;
}

export class Store {
  readonly #client: DynamoDBClient;
  readonly #binding: RegionBinding;
  #known: DynamoStoreRecord | undefined;
  #fault: SignerError | undefined;
  #isReplaced = false;
  readonly #inTurn = oneAfterTheOther();

  constructor(client: DynamoDBClient, binding: RegionBinding) {
    this.#client = client;
    this.#binding = binding;
  }

  get floor(): StoreFloor | null {
    return this.#known?.floor ?? null;
  }

  /** @throws SignerError slashing_unavailable: this process may not use the store any more */
  assertUsable(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  async read(signal?: AbortSignal): Promise<DynamoStoreRecord> {
    const found = await this.find(signal).catch(unavailable);
    if (found === undefined) throw recordLost(this.#binding.tableName);
    return this.#learn(found.reading);
  }

  /** Those of this process follow each other, so they do not contend. */
  change(after: (record: DynamoStoreRecord) => DynamoStoreRecord): Promise<DynamoStoreRecord> {
    return this.#inTurn(() => this.#change(after));
  }

  /** For every signer of it, and bound to this region: a jump is the one way to move a store. */
  raise(floor: StoreFloor): Promise<DynamoStoreRecord> {
    return this.change((record) => ({
      ...record,
      // What this process has read of the floor is not lost with the table.
      floor: higherMarks(higherMarks(record.floor, this.floor ?? floor), floor),
      region: this.#binding.region,
    }));
  }

  /** Of the future, while no other process uses the store: what was read of it before is forgotten. */
  async lower(floor: StoreFloor): Promise<DynamoStoreRecord> {
    const after = await this.change((record) => ({ ...record, floor: lowerOf(record.floor, floor) }));
    this.#known = after;
    return after;
  }

  isStillBound(): TransactWriteItem {
    this.assertUsable();
    if (this.#known === undefined) throw recordLost(this.#binding.tableName);
    const place = { TableName: this.#binding.tableName, Key: { pk: { S: NETWORK_PARTITION } } };
    return { ConditionCheck: { ...place, ...isStillBound(this.#known) } };
  }

  /** @throws also SignerError when the record cannot be believed */
  async find(signal?: AbortSignal, dated?: (date: number) => void): Promise<StoredRecord | undefined> {
    const Key = { pk: { S: NETWORK_PARTITION } };
    const get = new GetItemCommand({ TableName: this.#binding.tableName, Key, ConsistentRead: true });
    if (dated !== undefined) onAnswerDate(get, dated);
    const { Item: item } = await this.#client.send(get, signal === undefined ? {} : { abortSignal: signal });
    return item === undefined ? undefined : { item, reading: decodeRecord(item, this.#binding) };
  }

  /** What the service's answer is dated, in whole seconds. */
  async serviceTime(signal: AbortSignal): Promise<number | undefined> {
    let time: number | undefined;
    await this.find(signal, (date) => {
      time = date;
    });
    return time;
  }

  async bind(first: StoredRecord | undefined): Promise<void> {
    const { isForJump } = this.#binding;
    let found = first;
    if (found === undefined && !(await this.#isEmpty())) {
      // Another process may have made it meanwhile, and signed.
      found = await this.find();
      if (found === undefined) this.#fault = recordLost(this.#binding.tableName);
      if (this.#fault !== undefined && isForJump === true) return;
      this.assertUsable();
    }
    for (let attempt = 1; found === undefined; attempt++) {
      if (attempt > MAX_CHANGE_ATTEMPTS) throw contended();
      const outcome = await this.#put(this.#newRecord(), undefined);
      found = outcome === 'conflict' ? await this.find() : outcome;
    }
    this.#learn(found.reading);
    if (isForJump !== true) this.assertUsable();
  }

  async #change(next: (record: DynamoStoreRecord) => DynamoStoreRecord): Promise<DynamoStoreRecord> {
    let found = await this.find().catch(unavailable);
    for (let attempt = 1; attempt <= MAX_CHANGE_ATTEMPTS; attempt++) {
      const record = found === undefined ? this.#forLostRecord() : this.#learn(found.reading);
      if (this.#binding.isForJump !== true) this.assertUsable();
      const changed = next(record);
      const outcome = await this.#put(changed, found?.item).catch(unavailable);
      if (outcome !== 'conflict' && outcome.reading === changed) return this.#learn(changed);
      await pause(jittered(Math.min(CHANGE_PAUSE_MS * attempt, MAX_CHANGE_PAUSE_MS)));
      found = outcome === 'conflict' ? await this.find().catch(unavailable) : outcome;
    }
    throw contended();
  }

  /** @returns ours, or that of a process which was faster */
  async #put(record: DynamoStoreRecord, expected: Item | undefined): Promise<StoredRecord | 'conflict'> {
    const item = encodeRecord(record, this.#binding);
    const condition = { ...isStillRecord(expected), ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;
    try {
      await this.#client.send(new PutItemCommand({ TableName: this.#binding.tableName, Item: item, ...condition }));
      return { item, reading: record };
    } catch (error) {
      // It may also be our own write, repeated by the SDK.
      const fault = awsFault(error);
      if (fault === 'conflict') return 'conflict';
      if (fault !== 'condition_failed') throw error;
      const { Item: there } = error as { Item?: Item };
      return there === undefined ? 'conflict' : { item: there, reading: decodeRecord(there, this.#binding) };
    }
  }

  #learn(record: DynamoStoreRecord): DynamoStoreRecord {
    const known = this.#known;
    const { tableName: table, region } = this.#binding;
    // For good, even when the first store comes back: what was recorded in between is not known.
    this.#isReplaced ||= known !== undefined && known.id !== record.id;
    if (this.#isReplaced) {
      this.#fault = unusableTable(OTHER_STORE, { detail: { table } });
      throw this.#fault;
    }
    this.#fault =
      record.region === region ? undefined : refuseRegion({ tableName: table, region, bound: record.region });
    const floor = known?.floor == null ? record.floor : higherMarks(record.floor, known.floor);
    // The same object while nothing changes: code that judged by it sees that the floor is still the same.
    const isSame = known !== undefined && (floor === null || coversFloor(known.floor, floor));
    this.#known = { ...record, floor: isSame ? known.floor : floor };
    return record;
  }

  async #isEmpty(): Promise<boolean> {
    const scan = { TableName: this.#binding.tableName, Limit: 1, ConsistentRead: true };
    const { Items = [] } = await this.#client.send(new ScanCommand(scan));
    return Items.every((item) => item['pk']?.S === NETWORK_PARTITION);
  }

  #forLostRecord(): DynamoStoreRecord {
    if (this.#binding.isForJump !== true || this.#known !== undefined) throw recordLost(this.#binding.tableName);
    return this.#newRecord();
  }

  #newRecord(): DynamoStoreRecord {
    const id = randomBytes(STORE_ID_BYTES).toString('hex');
    return { id, incarnation: NO_INCARNATION, floor: null, region: this.#binding.region };
  }
}

const HAS_REPLICAS =
  'the slashing table has replicas: only signers of the region that it is bound to may use it, and a replica that ' +
  'takes over holds less, so move the table with a jump (strongroom slashing jump)';

const MAKE_ANEW = 'stop all signers that use it and raise it to the present (strongroom slashing jump)';
const OTHER_STORE =
  'the slashing table was replaced by another store under the running signer: find out by whom, then start it again';
const OTHER_REGION =
  'the slashing table is bound to another region: use the table there; or, when that region is lost, stop all signers ' +
  'there for good and move it here with a jump (strongroom slashing jump)';

function recordLost(table: string): SignerError {
  const hint = `the slashing table has lost its item ${NETWORK_PARTITION}: ${MAKE_ANEW}`;
  return unusableTable(hint, { detail: { table } });
}

function contended(): SignerError {
  return new SignerError('slashing_unavailable', { detail: { contended: NETWORK_PARTITION } });
}

export function refuseRegion(found: Readonly<Record<'tableName' | 'region' | 'bound', string>>): SignerError {
  const { tableName: table, region: configured, bound: bound_to } = found;
  return unusableTable(OTHER_REGION, { detail: { table, bound_to, configured } });
}

export function startFault(error: unknown, tableName: string): never {
  const facts = { cause: error, detail: { table: tableName } };
  if (awsFault(error) === 'not_found') {
    throw unusableTable('the slashing table does not exist: create it with `strongroom setup tables`', facts);
  }
  if (error instanceof Error && error.name === 'ValidationException') {
    throw unusableTable('the slashing table is of another shape: its one key must be the string `pk`', facts);
  }
  return unavailable(error);
}

// Two regions of a global table each accept a write and compare later: two signers could record rival votes.

/** `eventual`: each region accepts writes by itself; `strong`: they agree before they answer. */
type Replication = 'none' | 'eventual' | 'strong';

export async function replicationOf(client: DynamoDBClient, tableName: string): Promise<Replication> {
  const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName })).catch((error: unknown) => {
    if (awsFault(error) !== 'denied') throw error;
    throw unusableTable(NOT_ALLOWED, { cause: error, detail: { table: tableName } });
  });
  // The first version of global tables lists no replicas.
  const isGlobal = (Table?.Replicas ?? []).length > 0 || Table?.GlobalTableVersion !== undefined;
  if (Table?.MultiRegionConsistency === 'STRONG') return 'strong';
  return isGlobal ? 'eventual' : 'none';
}

/** @throws SignerError slashing_unavailable @param boundRegion undefined while the record names none */
export function checkReplication(replication: Replication, boundRegion: string | undefined, tableName: string): void {
  const detail = { table: tableName };
  if (replication === 'strong') throw unusableTable(NO_TRANSACTIONS, { detail });
  if (replication === 'eventual' && boundRegion === undefined) throw unusableTable(NOT_BOUND, { detail });
}

const NOT_ALLOWED =
  'the slashing table cannot be described, so nobody knows whether two regions write it: allow the signer ' +
  'dynamodb:DescribeTable on it (or set the credentials right)';
const NO_TRANSACTIONS =
  'the slashing table is a global table with multi-Region strong consistency, which takes no transactions: ' +
  'use a table in one region';
const NOT_BOUND =
  'the slashing table has replicas in other regions, which accept writes of their own, and it is not bound to one ' +
  'region yet: two signers could each record another vote. Remove the replicas, start a signer once, and add them again';
