// Reads and changes the record of a slashing table (record.ts). The first process that opens a table makes the record,
// or brings one of the first format up to date; every change compares and swaps, so that of any number of signers
// exactly one makes it. What this process has read of the record binds it from then on: a floor is never forgotten, and
// a record of another store or region stops all checks. A table that is missing or of another shape stops the start.

import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../../../observe/log.ts';
import type { SignerError } from '../../../api/errors.ts';
import {
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
  ScanCommand,
  type TransactWriteItem,
} from '../../../aws/dynamodb.ts';
import { jittered } from '../../../aws/dynamodb-transact.ts';
import { awsFault } from '../../../aws/errors.ts';
import { coversFloor, higherFloor } from '../../jump.ts';
import { NEW_STORE, STORE_ID_BYTES } from '../../new-store.ts';
import type { StoreFloor } from '../../types.ts';
import { checkReplication, replicationOf } from '../replicas.ts';
import { contended, recordLost, recordRolledBack, refuseRegion, startFault, storeReplaced } from '../store-faults.ts';
import { NETWORK_PARTITION } from './items.ts';
import {
  decodeRecord,
  encodeRecord,
  isStillBound,
  isStillRecord,
  type RecordBinding,
  type RecordReading,
  type StoreRecord,
} from './record.ts';
import { unavailable } from './table.ts';

/** Each failed attempt means that another signer changed the record in between. */
const MAX_CHANGE_ATTEMPTS = 64;
const CHANGE_PAUSE_MS = 4;
const MAX_CHANGE_PAUSE_MS = 200;

export interface StoreBinding extends RecordBinding {
  /** The client's region: its signers use the store. */
  readonly region: string;
  /**
   * For `strongroom slashing jump`: open also a store that is bound to another region, or whose record is lost. Nothing
   * is checked or written there before a jump has bound it to this region.
   */
  readonly isForJump?: boolean | undefined;
}

/** Bind a new table, bring an old one up to date, or check the one that is there. */
export async function openStore(client: DynamoDBClient, binding: StoreBinding, log: Log): Promise<Store> {
  const explain = (error: unknown) => startFault(error, binding.tableName);
  const replication = await replicationOf(client, binding.tableName).catch(explain);
  const store = new Store(client, binding);
  const found = await store.find().catch(explain);
  const bound = found?.reading === 'first_format' ? undefined : found?.reading.region;
  if (replication !== 'none') checkReplication(replication, bound, binding.tableName);
  if (replication !== 'none') log.warn({ table: binding.tableName, region: bound }, HAS_REPLICAS);
  await store.bind(found).catch(explain);
  if (found === undefined && binding.isForJump !== true) log.warn({ table: binding.tableName }, NEW_STORE);
  return store;
}

/** A record as it was found. */
interface Found {
  readonly item: Item;
  readonly reading: RecordReading;
}

export class Store {
  readonly #client: DynamoDBClient;
  readonly #binding: StoreBinding;
  #known: StoreRecord | undefined;
  #fault: SignerError | undefined;
  #isReplaced = false;
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(client: DynamoDBClient, binding: StoreBinding) {
    this.#client = client;
    this.#binding = binding;
  }

  /** The highest floor that this process has read. */
  get floor(): StoreFloor | null {
    return this.#known?.floor ?? null;
  }

  /** @throws SignerError slashing_unavailable: the store is, or has become, none that this process may use */
  assertUsable(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** Strongly consistent. */
  async read(signal?: AbortSignal): Promise<StoreRecord> {
    const found = await this.find(signal).catch(unavailable);
    if (found === undefined) throw recordLost(this.#binding.tableName);
    return this.#learn(found.reading);
  }

  /** Compare and swap until it succeeds. Those of this process follow each other, so they do not contend. */
  change(next: (record: StoreRecord) => StoreRecord): Promise<StoreRecord> {
    const change = this.#changeAfter(this.#lastChange, next);
    this.#lastChange = change.catch(() => undefined);
    return change;
  }

  /** For a transaction: what a first record is judged by still holds. */
  isStillBound(): TransactWriteItem {
    this.assertUsable();
    if (this.#known === undefined) throw recordLost(this.#binding.tableName);
    const place = { TableName: this.#binding.tableName, Key: { pk: { S: NETWORK_PARTITION } } };
    return { ConditionCheck: { ...place, ...isStillBound(this.#known) } };
  }

  /** @throws what the call failed with, or SignerError when the record cannot be believed */
  async find(signal?: AbortSignal): Promise<Found | undefined> {
    const Key = { pk: { S: NETWORK_PARTITION } };
    const get = new GetItemCommand({ TableName: this.#binding.tableName, Key, ConsistentRead: true });
    const { Item: item } = await this.#client.send(get, signal === undefined ? {} : { abortSignal: signal });
    return item === undefined ? undefined : { item, reading: decodeRecord(item, this.#binding) };
  }

  /** For the start: make the record, or bring it up to date, unless it is good. */
  async bind(first: Found | undefined): Promise<void> {
    const { region, isForJump } = this.#binding;
    let found = first;
    if (found === undefined && !(await this.#isEmpty())) {
      // Another process may have made the record meanwhile, and signed.
      found = await this.find();
      if (found === undefined) this.#fault = recordLost(this.#binding.tableName);
      if (this.#fault !== undefined && isForJump === true) return;
      this.assertUsable();
    }
    for (let attempt = 1; found === undefined || found.reading === 'first_format'; attempt++) {
      if (attempt > MAX_CHANGE_ATTEMPTS) throw contended();
      const record: StoreRecord = { id: newStoreId(), revision: 0, floor: null, region };
      const outcome = await this.#put(record, found?.item);
      found = outcome === 'conflict' ? await this.find() : outcome;
    }
    this.#learn(found.reading);
    if (isForJump !== true) this.assertUsable();
  }

  async #changeAfter(earlier: Promise<unknown>, next: (record: StoreRecord) => StoreRecord): Promise<StoreRecord> {
    await earlier;
    return this.#change(next);
  }

  async #change(next: (record: StoreRecord) => StoreRecord): Promise<StoreRecord> {
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

  /** What is there afterwards: ours, or that of a process which was faster. */
  async #put(record: StoreRecord, expected: Item | undefined): Promise<Found | 'conflict'> {
    const item = encodeRecord(record, this.#binding);
    const condition = { ...isStillRecord(expected), ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;
    try {
      await this.#client.send(new PutItemCommand({ TableName: this.#binding.tableName, Item: item, ...condition }));
      return { item, reading: record };
    } catch (error) {
      // It may also be our own write, when its answer was lost and the SDK repeated it.
      const fault = awsFault(error);
      if (fault === 'conflict') return 'conflict';
      if (fault !== 'condition_failed') throw error;
      const { Item: there } = error as { Item?: Item };
      return there === undefined ? 'conflict' : { item: there, reading: decodeRecord(there, this.#binding) };
    }
  }

  /** Every record that is read passes here. */
  #learn(record: RecordReading): StoreRecord {
    if (record === 'first_format') throw recordRolledBack(this.#binding.tableName);
    const known = this.#known;
    const { tableName: table, region } = this.#binding;
    // For good: whatever is in its place later, nobody knows what happened in between.
    this.#isReplaced ||= known !== undefined && known.id !== record.id;
    if (this.#isReplaced) {
      this.#fault = storeReplaced(table);
      throw this.#fault;
    }
    this.#fault =
      record.region === region ? undefined : refuseRegion({ tableName: table, region, bound: record.region });
    const floor = known?.floor == null ? record.floor : higherFloor(record.floor, known.floor);
    // The same object while nothing changes: whoever judged by it can tell.
    const isSame = known !== undefined && (floor === null || coversFloor(known.floor, floor));
    this.#known = { ...record, floor: isSame ? known.floor : floor };
    return record;
  }

  async #isEmpty(): Promise<boolean> {
    const scan = { TableName: this.#binding.tableName, Limit: 1, ConsistentRead: true };
    const { Items = [] } = await this.#client.send(new ScanCommand(scan));
    // The record may have been made by another process meanwhile.
    return Items.every((item) => item['pk']?.S === NETWORK_PARTITION);
  }

  #forLostRecord(): StoreRecord {
    if (this.#binding.isForJump !== true || this.#known !== undefined) throw recordLost(this.#binding.tableName);
    return { id: newStoreId(), revision: 0, floor: null, region: this.#binding.region };
  }
}

const HAS_REPLICAS =
  'the slashing table has replicas: only signers of the region that it is bound to may use it, and a replica that ' +
  'takes over holds less, so move the table with a jump (strongroom slashing jump)';

function newStoreId(): string {
  return randomBytes(STORE_ID_BYTES).toString('hex');
}
