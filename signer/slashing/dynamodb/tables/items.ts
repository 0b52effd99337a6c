// The items of the DynamoDB slashing table: one for the last block of a key, one for its last vote, so that the two
// never contend. An item is trusted only after its code over every attribute was checked. A key whose tenure ever ended
// has `tenure` in both items, which then may have no numbers.

import { decodeHex, encodeHex } from '../../../../common/formats/hex.ts';
import type { AttributeValue, Item } from '../../../aws/dynamodb.ts';
import type { RowIntegrity } from '../../history/integrity.ts';
import { NO_MARKS } from '../../history/rules.ts';
import type { HighWaterMarks, PublicKeyHex, ValidatorHistory } from '../../types.ts';

/** The highest block of a key. A null root refuses every block at the slot. */
export interface BlockMark {
  readonly kind: 'block';
  readonly slot: number;
  /** `0x` and 64 hex digits. */
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

export interface MarkContent {
  /** Undefined: the tenure ended before anything of the kind was signed. */
  readonly mark: Mark | undefined;
  readonly tenure: number;
  /** Before a jump raised the mark; undefined: what the mark says. */
  readonly signed: HighWaterMarks | undefined;
}

export interface MarkItem extends MarkContent {
  readonly integrityCode: string;
}

export interface MarkKey {
  readonly kind: MarkKind;
  readonly publicKey: PublicKeyHex;
}

export const NETWORK_PARTITION = 'NETWORK';
const PARTITIONS = { block: 'BLOCK#', attestation: 'ATTESTATION#' } as const;
export const MARK_KINDS: readonly MarkKind[] = ['block', 'attestation'];

export function partitionOf({ kind, publicKey }: MarkKey): string {
  return PARTITIONS[kind] + publicKey;
}

export function markKeyOf(partition: string | undefined): MarkKey | undefined {
  const kind = MARK_KINDS.find((candidate) => partition?.startsWith(PARTITIONS[candidate]));
  return kind === undefined ? undefined : { kind, publicKey: (partition ?? '').slice(PARTITIONS[kind].length) };
}

export function markItem(publicKey: PublicKeyHex, mark: Mark, tenure: number, integrity: RowIntegrity): MarkItem {
  return sealItem({ kind: mark.kind, publicKey }, { mark, tenure, signed: undefined }, integrity);
}

export function sealItem(key: MarkKey, content: MarkContent, integrity: RowIntegrity): MarkItem {
  const { mark, tenure, signed } = content;
  return { mark, tenure, signed, integrityCode: encodeHex(integrity.code(...sealed(key, content))) };
}

export function encodeMarkItem(key: MarkKey, item: MarkItem): Item {
  return { pk: { S: partitionOf(key) }, ...markAttributes(item) };
}

export function markAttributes({ mark, tenure, signed, integrityCode }: MarkItem): Item {
  const root = mark?.signingRoot ?? null;
  return {
    ...(mark === undefined ? {} : numbersOf(mark)),
    ...(root === null ? {} : { signing_root: { S: root } }),
    ...(signed === undefined ? {} : signedNumbers(signed)),
    ...(tenure === 0 ? {} : { tenure: { N: String(tenure) } }),
    integrity: { S: integrityCode },
  };
}

/** Undefined when it is not one that this program wrote for this key. */
export function decodeMarkItem(key: MarkKey, item: Item, integrity: RowIntegrity): MarkItem | undefined {
  const code = decodeHex(item['integrity']?.S ?? '');
  const content = decodeContent(key.kind, item);
  if (code === undefined || content === undefined) return undefined;
  if (!integrity.verify(code, ...sealed(key, content))) return undefined;
  return { ...content, integrityCode: encodeHex(code) };
}

/** Every attribute: the code alone would accept an item whose numbers were lowered beside their old code. */
export function isStillStored(expected: MarkItem | undefined): {
  readonly ConditionExpression: string;
  readonly ExpressionAttributeValues?: Item;
} {
  if (expected === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  const absent = [
    ...(expected.mark?.signingRoot == null ? ['signing_root'] : []),
    // Stated of every item in tenure 0: one that ended in between may not be written over.
    ...(expected.tenure === 0 ? ['tenure'] : []),
  ];
  return isStill(markAttributes(expected), absent);
}

export function isStill(values: Item, absent: readonly string[]) {
  const names = Object.keys(values);
  const terms = [
    ...names.map((name) => `${name} = :${name}`),
    ...absent.map((name) => `attribute_not_exists(${name})`),
  ];
  return {
    ConditionExpression: terms.join(' AND '),
    ExpressionAttributeValues: Object.fromEntries(Object.entries(values).map(([name, value]) => [`:${name}`, value])),
  };
}

export function blockMark({ slot, signingRoot }: ValidatorHistory['blocks'][number]): BlockMark {
  return { kind: 'block', slot, signingRoot: rootText(signingRoot) };
}

export function attestationMark(vote: ValidatorHistory['attestations'][number]): AttestationMark {
  const { sourceEpoch, targetEpoch, signingRoot } = vote;
  return { kind: 'attestation', sourceEpoch, targetEpoch, signingRoot: rootText(signingRoot) };
}

function rootText(root: Uint8Array | null): string | null {
  return root === null ? null : encodeHex(root);
}

/** Marks are verified, or made of roots. */
export function rootOf(mark: Mark | undefined): Uint8Array | null {
  if (mark === undefined || mark.signingRoot === null) return null;
  const bytes = decodeHex(mark.signingRoot, 32);
  if (bytes === undefined) throw new TypeError('a root is 32 bytes of hex');
  return bytes;
}

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

function signedNumbers({ blockSlot, sourceEpoch, targetEpoch }: HighWaterMarks): Item {
  return {
    ...(blockSlot === null ? {} : { signed_slot: { N: String(blockSlot) } }),
    ...(sourceEpoch === null ? {} : { signed_source_epoch: { N: String(sourceEpoch) } }),
    ...(targetEpoch === null ? {} : { signed_target_epoch: { N: String(targetEpoch) } }),
  };
}

function decodeContent(kind: MarkKind, item: Item): MarkContent | undefined {
  const tenure = item['tenure'] === undefined ? 0 : safeInteger(item['tenure']);
  if (tenure === undefined || (tenure === 0 && item['tenure'] !== undefined)) return undefined;
  const numbers = kind === 'block' ? BLOCK_NUMBERS : ATTESTATION_NUMBERS;
  if ([...numbers, 'signing_root'].every((name) => item[name] === undefined)) {
    return { mark: undefined, tenure, signed: undefined };
  }
  const mark = decodeMark(kind, item);
  const signed = decodeSigned(kind, item);
  return mark === undefined || signed === 'damaged' ? undefined : { mark, tenure, signed };
}

const BLOCK_NUMBERS = ['slot'] as const;
const ATTESTATION_NUMBERS = ['source_epoch', 'target_epoch'] as const;

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

function decodeSigned(kind: MarkKind, item: Item): HighWaterMarks | undefined | 'damaged' {
  if (kind === 'block') {
    if (item['signed_slot'] === undefined) return undefined;
    const blockSlot = safeInteger(item['signed_slot']);
    return blockSlot === undefined ? 'damaged' : { ...NO_MARKS, blockSlot };
  }
  if (item['signed_source_epoch'] === undefined && item['signed_target_epoch'] === undefined) return undefined;
  const sourceEpoch = safeInteger(item['signed_source_epoch']);
  const targetEpoch = safeInteger(item['signed_target_epoch']);
  if (sourceEpoch === undefined || targetEpoch === undefined) return 'damaged';
  return { ...NO_MARKS, sourceEpoch, targetEpoch };
}

export function safeInteger(attribute: AttributeValue | undefined): number | undefined {
  const value = Number(attribute?.N ?? 'absent');
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Items that only checks write have the codes they always had. */
function sealed({ kind, publicKey }: MarkKey, { mark, tenure, signed }: MarkContent): Parameters<RowIntegrity['code']> {
  const bytes = decodeHex(publicKey, 48);
  if (bytes === undefined) throw new TypeError('a public key is 48 bytes of hex');
  const root = rootOf(mark);
  if (mark !== undefined && tenure === 0 && signed === undefined) {
    if (mark.kind === 'block') return ['dynamodb block v1', bytes, [mark.slot, root]];
    return ['dynamodb attestation v1', bytes, [mark.sourceEpoch, mark.targetEpoch, root]];
  }
  const { blockSlot, sourceEpoch, targetEpoch } = highWaterMarks(mark);
  const before = signed ?? NO_MARKS;
  const fields = [blockSlot, sourceEpoch, targetEpoch, root, before.blockSlot, before.sourceEpoch, before.targetEpoch];
  return [`dynamodb ${kind} v2`, bytes, [...fields, tenure]];
}

/** A mark that refuses what this one does, and all that the floor says; itself when it does so already. */
export function raisedMark(kind: MarkKind, mark: Mark | undefined, floor: HighWaterMarks): Mark | undefined {
  const raised = kind === 'block' ? raisedBlock(mark, floor) : raisedAttestation(mark, floor);
  return raised !== undefined && mark !== undefined && isSameMark(raised, mark) ? mark : raised;
}

export function isSameMark(one: Mark, other: Mark): boolean {
  return one.signingRoot === other.signingRoot && hasSameNumbers(one, other);
}

function raisedBlock(mark: Mark | undefined, { blockSlot }: HighWaterMarks): Mark | undefined {
  if (blockSlot === null || (mark?.kind === 'block' && mark.slot > blockSlot)) return mark;
  return { kind: 'block', slot: blockSlot, signingRoot: null };
}

function raisedAttestation(mark: Mark | undefined, { sourceEpoch, targetEpoch }: HighWaterMarks): Mark | undefined {
  if (sourceEpoch === null && targetEpoch === null) return mark;
  const own = mark?.kind === 'attestation' ? mark : undefined;
  const [source, target] = [sourceEpoch ?? 0, targetEpoch ?? 0];
  if (own !== undefined && own.sourceEpoch >= source && (own.targetEpoch > target || targetEpoch === null)) return own;
  return {
    kind: 'attestation',
    sourceEpoch: Math.max(own?.sourceEpoch ?? 0, source),
    targetEpoch: Math.max(own?.targetEpoch ?? 0, target),
    signingRoot: null,
  };
}

export function hasSameNumbers(one: Mark, other: Mark): boolean {
  if (one.kind === 'block') return other.kind === 'block' && one.slot === other.slot;
  if (other.kind === 'block') return false;
  return one.sourceEpoch === other.sourceEpoch && one.targetEpoch === other.targetEpoch;
}
