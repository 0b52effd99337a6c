// The record of a slashing table, its item NETWORK, under one code.

import { decodeHex, encodeHex } from '../../../../common/formats/hex.ts';
import { SignerError } from '../../../api/errors.ts';
import { ofOtherNetwork } from '../../../api/network-table.ts';
import type { Item } from '../../../aws/dynamodb.ts';
import { NO_PUBLIC_KEY, type RowIntegrity } from '../../history/codes.ts';
import type { StoreFloor } from '../../types.ts';
import { isStill, NETWORK_PARTITION, numberAttributes, safeInteger } from './items.ts';

const FORMAT_VERSION = 1;

export interface DynamoStoreRecord {
  readonly id: string;
  readonly incarnation: string;
  /** A jump raises the items of keys to it; keys without an item are judged by it. */
  readonly floor: StoreFloor | null;
  readonly region: string;
}

export interface RecordBinding {
  readonly tableName: string;
  readonly genesisValidatorsRoot: Uint8Array;
  /** For the same network; the caller wipes it after the backend is closed. */
  readonly integrity: RowIntegrity;
}

export function encodeRecord(record: DynamoStoreRecord, { genesisValidatorsRoot, integrity }: RecordBinding): Item {
  return {
    pk: { S: NETWORK_PARTITION },
    format_version: { N: String(FORMAT_VERSION) },
    genesis_validators_root: { S: encodeHex(genesisValidatorsRoot) },
    ...bindingAttributes(record),
    incarnation: { S: record.incarnation },
    integrity: { S: encodeHex(integrity.code(...codedFields(record))) },
  };
}

/** @throws SignerError slashing_unavailable: another network or format; slashing_integrity: another key, or altered */
export function decodeRecord(item: Item, binding: RecordBinding): DynamoStoreRecord {
  const { tableName, integrity } = binding;
  confirmNetwork(item, binding);
  const record = decodeMembers(item);
  const code = decodeHex(item['integrity']?.S ?? '');
  if (code === undefined || record === undefined || !integrity.verify(code, ...codedFields(record))) {
    const hint = 'the slashing table was written with another key, or its item NETWORK was altered';
    throw new SignerError('slashing_integrity', { hint, detail: { table: tableName } });
  }
  return record;
}

/** Needs no key. @throws SignerError slashing_unavailable: another network or format */
export function confirmNetwork(
  item: Item,
  { tableName, genesisValidatorsRoot }: Omit<RecordBinding, 'integrity'>,
): void {
  const detail = { table: tableName };
  if (safeInteger(item['format_version']) !== FORMAT_VERSION)
    throw unusableTable('the slashing table is of a format that this version does not know', { detail });
  const root = item['genesis_validators_root']?.S;
  if (root !== encodeHex(genesisValidatorsRoot))
    throw unusableTable(`the slashing table is ${ofOtherNetwork(root, genesisValidatorsRoot)}`, { detail });
}

export function isStillRecord(found: Item | undefined) {
  if (found === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  const present = Object.entries(found).filter(([name]) => ATTRIBUTES.includes(name));
  return isStill(Object.fromEntries(present), ATTRIBUTES);
}

export function isStillBound(record: DynamoStoreRecord) {
  return isStill(bindingAttributes(record), FLOOR_ATTRIBUTES);
}

export function unusableTable(
  hint: string,
  facts: { readonly cause?: unknown; readonly detail: Record<string, unknown> },
) {
  return new SignerError('slashing_unavailable', { hint, ...facts });
}

const FLOOR_ATTRIBUTES = ['floor_slot', 'floor_source_epoch', 'floor_target_epoch'] as const;
const ATTRIBUTES = [
  ...['format_version', 'genesis_validators_root', 'store_id', 'store_region', 'incarnation', 'integrity'],
  ...FLOOR_ATTRIBUTES,
];

function bindingAttributes({ id, region, floor }: DynamoStoreRecord): Item {
  const floors = floor === null ? {} : numberAttributes(floor, 'floor_');
  return { store_id: { S: id }, store_region: { S: region }, ...floors };
}

function decodeMembers(item: Item): DynamoStoreRecord | undefined {
  const id = item['store_id']?.S ?? '';
  const region = item['store_region']?.S ?? '';
  const incarnation = item['incarnation']?.S;
  const floor = decodeFloor(item);
  if (!/^[0-9a-f]{32}$/.test(id) || region === '' || incarnation === undefined || floor === undefined) return undefined;
  return { id, incarnation, floor, region };
}

export function decodeFloor(item: Item): StoreFloor | null | undefined {
  if (FLOOR_ATTRIBUTES.every((name) => item[name] === undefined)) return null;
  const [slot, sourceEpoch, targetEpoch] = FLOOR_ATTRIBUTES.map((name) => safeInteger(item[name]));
  if (slot === undefined || sourceEpoch === undefined || targetEpoch === undefined) return undefined;
  return { slot, sourceEpoch, targetEpoch };
}

/** The network and the kind of store are in every code. */
function codedFields(record: DynamoStoreRecord): Parameters<RowIntegrity['code']> {
  const { id, incarnation, floor, region } = record;
  const floors = [floor?.slot ?? null, floor?.sourceEpoch ?? null, floor?.targetEpoch ?? null];
  const fields = [FORMAT_VERSION, Buffer.from(id, 'hex'), Buffer.from(incarnation), ...floors, Buffer.from(region)];
  return ['dynamodb store v1', NO_PUBLIC_KEY, fields];
}
