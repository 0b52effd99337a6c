// The items of the DynamoDB slashing table: one for the last block of a key, one for its last vote, so that the two
// never contend, and one that binds the table to a network. An item read from the table is trusted only after its
// integrity code was checked over every attribute; an item that is not exactly of the shape below counts as damaged.

import { decodeHex, encodeHex } from '../../api/hex.ts';
import type { AttributeValue, CreateTableCommandInput } from '../../aws/dynamodb.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import type { HighWaterMarks, PublicKeyHex } from '../types.ts';

/** The highest block of a key. A null root refuses every block at the slot. */
export interface BlockMark {
  readonly kind: 'block';
  readonly slot: number;
  /** `0x` and 64 hex digits: text, because one is kept in memory for every key. */
  readonly signingRoot: string | null;
}

/** The highest epochs of a key. A null root: they are not of one vote, or its root is unknown. */
export interface AttestationMark {
  readonly kind: 'attestation';
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
  readonly signingRoot: string | null;
}

export type Mark = BlockMark | AttestationMark;
export type MarkKind = Mark['kind'];

/** A mark as it is stored, its code checked or just made. */
export interface MarkItem {
  readonly mark: Mark;
  /** Hex. */
  readonly integrityCode: string;
}

export interface MarkKey {
  readonly kind: MarkKind;
  readonly publicKey: PublicKeyHex;
}

/** No attribute of ours is among DynamoDB's reserved words, so expressions name them as they are. */
export type Item = Record<string, AttributeValue>;

export const NETWORK_PARTITION = 'NETWORK';
const PARTITIONS = { block: 'BLOCK#', attestation: 'ATTESTATION#' } as const;
const KINDS: readonly MarkKind[] = ['block', 'attestation'];

/** What `CreateTable` needs: on-demand capacity, one string as key, protected against deletion. */
export function slashingTableDefinition(tableName: string): CreateTableCommandInput {
  return {
    TableName: tableName,
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
    DeletionProtectionEnabled: true,
  };
}

export function partitionOf({ kind, publicKey }: MarkKey): string {
  return PARTITIONS[kind] + publicKey;
}

/** Undefined for a partition that holds no mark. */
export function markKeyOf(partition: string | undefined): MarkKey | undefined {
  const kind = KINDS.find((candidate) => partition?.startsWith(PARTITIONS[candidate]));
  return kind === undefined ? undefined : { kind, publicKey: (partition ?? '').slice(PARTITIONS[kind].length) };
}

/** Seal a mark for its key. */
export function markItem(publicKey: PublicKeyHex, mark: Mark, integrity: RowIntegrity): MarkItem {
  return { mark, integrityCode: encodeHex(integrity.code(...sealed(publicKey, mark))) };
}

export function encodeMarkItem(publicKey: PublicKeyHex, item: MarkItem): Item {
  return { pk: { S: partitionOf({ kind: item.mark.kind, publicKey }) }, ...markAttributes(item) };
}

/** Every attribute but the key. */
export function markAttributes({ mark, integrityCode }: MarkItem): Item {
  return {
    ...numbersOf(mark),
    ...(mark.signingRoot === null ? {} : { signing_root: { S: mark.signingRoot } }),
    integrity: { S: integrityCode },
  };
}

/** Undefined when the item is not one that this program wrote for this key, of this kind, on this network. */
export function decodeMarkItem(key: MarkKey, item: Item, integrity: RowIntegrity): MarkItem | undefined {
  const code = decodeHex(item['integrity']?.S ?? '');
  const mark = decodeMark(key.kind, item);
  if (code === undefined || mark === undefined) return undefined;
  if (!integrity.verify(code, ...sealed(key.publicKey, mark))) return undefined;
  return { mark, integrityCode: encodeHex(code) };
}

/**
 * The condition that the stored item is exactly `expected`, attribute by attribute; undefined: that there is none.
 * Comparing the code alone would accept an item whose numbers were lowered beside their old code.
 */
export function isStillStored(expected: MarkItem | undefined): {
  readonly ConditionExpression: string;
  readonly ExpressionAttributeValues?: Item;
} {
  if (expected === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  const values = markAttributes(expected);
  const terms = Object.keys(values).map((name) => `${name} = :${name}`);
  if (expected.mark.signingRoot === null) terms.push('attribute_not_exists(signing_root)');
  return {
    ConditionExpression: terms.join(' AND '),
    ExpressionAttributeValues: Object.fromEntries(Object.entries(values).map(([name, value]) => [`:${name}`, value])),
  };
}

/** The high-water marks that one item says; those of the other kind are null. */
export function highWaterMarks(mark: Mark | undefined): HighWaterMarks {
  return {
    blockSlot: mark?.kind === 'block' ? mark.slot : null,
    sourceEpoch: mark?.kind === 'attestation' ? mark.sourceEpoch : null,
    targetEpoch: mark?.kind === 'attestation' ? mark.targetEpoch : null,
  };
}

function numbersOf(mark: Mark): Item {
  if (mark.kind === 'block') return { slot: { N: String(mark.slot) } };
  return { source_epoch: { N: String(mark.sourceEpoch) }, target_epoch: { N: String(mark.targetEpoch) } };
}

function decodeMark(kind: MarkKind, item: Item): Mark | undefined {
  const root = item['signing_root'];
  const signingRoot = root === undefined ? null : decodeHex(root.S ?? '', 32);
  if (signingRoot === undefined) return undefined;
  const text = signingRoot === null ? null : encodeHex(signingRoot);
  if (kind === 'block') {
    const slot = safeInteger(item['slot']);
    return slot === undefined ? undefined : { kind, slot, signingRoot: text };
  }
  const sourceEpoch = safeInteger(item['source_epoch']);
  const targetEpoch = safeInteger(item['target_epoch']);
  if (sourceEpoch === undefined || targetEpoch === undefined) return undefined;
  return { kind, sourceEpoch, targetEpoch, signingRoot: text };
}

function safeInteger(attribute: AttributeValue | undefined): number | undefined {
  const value = Number(attribute?.N ?? 'absent');
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** What the integrity code of an item covers. */
function sealed(publicKey: PublicKeyHex, mark: Mark): Parameters<RowIntegrity['code']> {
  const bytes = decodeHex(publicKey, 48);
  if (bytes === undefined) throw new TypeError('a public key is 48 bytes of hex');
  const root = mark.signingRoot === null ? null : (decodeHex(mark.signingRoot, 32) ?? null);
  if (mark.kind === 'block') return ['dynamodb block v1', bytes, [mark.slot, root]];
  return ['dynamodb attestation v1', bytes, [mark.sourceEpoch, mark.targetEpoch, root]];
}
