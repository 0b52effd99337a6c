// The item that binds a slashing table to one network and to one way of making integrity codes. It is written by the
// first process that opens the table and only read afterwards. A table that is missing, is of another shape, or belongs
// to another network or master key stops the start with a message that says what to do.

import { SignerError } from '../../api/errors.ts';
import { decodeHex, encodeHex } from '../../api/hex.ts';
import { type DynamoDBClient, GetItemCommand, PutItemCommand } from '../../aws/dynamodb.ts';
import { awsFault } from '../../aws/errors.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import { type Item, NETWORK_PARTITION } from './items.ts';
import { unavailable } from './table.ts';

const FORMAT_VERSION = 1;
/** The code covers the network, and proves the key that codes are made with. It belongs to no validator. */
const SEALED = ['dynamodb network v1', new Uint8Array(48), [FORMAT_VERSION]] as const;

export interface NetworkBinding {
  readonly tableName: string;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  readonly integrity: RowIntegrity;
}

/** Bind a new table, or check the one that is there. */
export async function bindNetwork(client: DynamoDBClient, binding: NetworkBinding): Promise<void> {
  const explain = (error: unknown) => startFault(error, binding.tableName);
  const found = await readNetworkItem(client, binding.tableName).catch(explain);
  checkBinding(found ?? (await createNetworkItem(client, binding).catch(explain)), binding);
}

/** Rejects unless the table answers now and is still bound to the network. */
export async function checkNetwork(
  client: DynamoDBClient,
  binding: NetworkBinding,
  signal: AbortSignal,
): Promise<void> {
  checkBinding(await readNetworkItem(client, binding.tableName, signal).catch(unavailable), binding);
}

async function readNetworkItem(client: DynamoDBClient, TableName: string, signal?: AbortSignal) {
  const get = new GetItemCommand({ TableName, Key: { pk: { S: NETWORK_PARTITION } }, ConsistentRead: true });
  return (await client.send(get, signal === undefined ? {} : { abortSignal: signal })).Item;
}

/** The item that is there afterwards: ours, or that of a process which was faster. */
async function createNetworkItem(client: DynamoDBClient, binding: NetworkBinding): Promise<Item | undefined> {
  const item = networkItem(binding);
  const condition = { ConditionExpression: 'attribute_not_exists(pk)' };
  try {
    await client.send(new PutItemCommand({ TableName: binding.tableName, Item: item, ...condition }));
    return item;
  } catch (error) {
    // It may also be our own write, when its answer was lost and the SDK repeated it.
    if (awsFault(error) === 'condition_failed') return readNetworkItem(client, binding.tableName);
    throw error;
  }
}

function networkItem({ genesisValidatorsRoot, integrity }: NetworkBinding): Item {
  return {
    pk: { S: NETWORK_PARTITION },
    format_version: { N: String(FORMAT_VERSION) },
    genesis_validators_root: { S: encodeHex(genesisValidatorsRoot) },
    integrity: { S: encodeHex(integrity.code(...SEALED)) },
  };
}

function checkBinding(found: Item | undefined, { tableName, genesisValidatorsRoot, integrity }: NetworkBinding): void {
  const detail = { table: tableName };
  if (found === undefined) throw unusable(`the slashing table has lost its item ${NETWORK_PARTITION}`, { detail });
  if (found['format_version']?.N !== String(FORMAT_VERSION)) {
    throw unusable('the slashing table is of a format that this version does not know', { detail });
  }
  const root = found['genesis_validators_root']?.S;
  if (root !== encodeHex(genesisValidatorsRoot)) {
    const hint = 'the slashing table is bound to another genesis validators root';
    throw unusable(hint, { detail: { ...detail, genesis_validators_root: root } });
  }
  const code = decodeHex(found['integrity']?.S ?? '');
  if (code === undefined || !integrity.verify(code, ...SEALED)) {
    throw new SignerError('slashing_integrity', { hint: 'the slashing table was written with another key', detail });
  }
}

function startFault(error: unknown, tableName: string): never {
  const facts = { cause: error, detail: { table: tableName } };
  if (awsFault(error) === 'not_found') {
    throw unusable('the slashing table does not exist: create it with `strongroom setup tables`', facts);
  }
  if (error instanceof Error && error.name === 'ValidationException') {
    throw unusable('the slashing table is of another shape: its one key must be the string `pk`', facts);
  }
  return unavailable(error);
}

function unusable(hint: string, facts: { readonly cause?: unknown; readonly detail: Record<string, unknown> }) {
  return new SignerError('slashing_unavailable', { hint, ...facts });
}
