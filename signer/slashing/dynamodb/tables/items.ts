// The items of the DynamoDB slashing table: one for the last block of a key, one for its last vote, so that the two
// never contend. An item is trusted only after its code over every attribute was checked. A key whose tenure ever ended
// has `tenure` in both items, which then may have no numbers.

import { decodeHex, encodeHex } from '../../../../common/formats/hex.ts';
import type { AttributeValue, Item } from '../../../aws/dynamodb.ts';
import type { RowIntegrity } from '../../history/codes.ts';
import { NO_MARKS } from '../../history/head.ts';
import { isRolledBack } from '../../history/rules.ts';
import type { BlockEntry, KeyHistory, Marks, PublicKeyHex, VoteEntry, VoteEpochs } from '../../types.ts';

/**
 * The highest block of a key, or its highest epochs. A null root: they are not of one message, or its root is unknown;
 * every message with these numbers is refused.
 */
export type Mark = (BlockNumbers | VoteNumbers) & {
  /** `0x` and 64 hex digits. */
  readonly signingRoot: string | null;
};
type BlockNumbers = { readonly kind: 'block'; readonly slot: number } & Marks;
type VoteNumbers = { readonly kind: 'attestation' } & VoteEpochs & Marks;
type MarkKind = Mark['kind'];

export interface MarkContent {
  /** Undefined: the tenure ended before anything of the kind was signed. */
  readonly mark: Mark | undefined;
  readonly tenure: number;
  /** Before a jump raised the mark; undefined: what the mark says. */
  readonly signed: Marks | undefined;
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

export function markPartition({ kind, publicKey }: MarkKey): string {
  return PARTITIONS[kind] + publicKey;
}

export function markKeysOf(publicKey: PublicKeyHex): MarkKey[] {
  return MARK_KINDS.map((kind) => ({ kind, publicKey }));
}

export function markKeyOf(partition: string | undefined): MarkKey | undefined {
  const kind = MARK_KINDS.find((candidate) => partition?.startsWith(PARTITIONS[candidate]));
  return kind === undefined ? undefined : { kind, publicKey: (partition ?? '').slice(PARTITIONS[kind].length) };
}

export function codedItem(key: MarkKey, content: MarkContent, integrity: RowIntegrity): MarkItem {
  const { mark, tenure, signed } = content;
  return { mark, tenure, signed, integrityCode: encodeHex(integrity.code(...codedFields(key, content))) };
}

export function encodeMarkItem(key: MarkKey, item: MarkItem): Item {
  return { pk: { S: markPartition(key) }, ...markAttributes(item) };
}

export function markAttributes({ mark, tenure, signed, integrityCode }: MarkItem): Item {
  const root = mark?.signingRoot ?? null;
  return {
    ...(mark === undefined ? {} : numberAttributes(mark)),
    ...(root === null ? {} : { signing_root: { S: root } }),
    ...(signed === undefined ? {} : numberAttributes(signed, SIGNED)),
    ...(tenure === 0 ? {} : { tenure: { N: String(tenure) } }),
    integrity: { S: integrityCode },
  };
}

/** Undefined when it is not one that this program wrote for this key. */
export function decodeMarkItem(key: MarkKey, item: Item, integrity: RowIntegrity): MarkItem | undefined {
  const code = decodeHex(item['integrity']?.S ?? '');
  const content = decodeContent(key.kind, item);
  if (code === undefined || content === undefined) return undefined;
  if (!integrity.verify(code, ...codedFields(key, content))) return undefined;
  return { ...content, integrityCode: encodeHex(code) };
}

/** Every attribute: the code alone would accept an item whose numbers were lowered while its code stayed. */
export function isStillStored(expected: MarkItem | undefined): {
  readonly ConditionExpression: string;
  readonly ExpressionAttributeValues?: Item;
} {
  if (expected === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  return isStill(markAttributes(expected), ['signing_root', 'tenure']);
}

/** @param names of those that may be absent, and then have to be */
export function isStill(values: Item, names: readonly string[]) {
  const absent = names.filter((name) => values[name] === undefined);
  const terms = [
    ...Object.keys(values).map((name) => `${name} = :${name}`),
    ...absent.map((name) => `attribute_not_exists(${name})`),
  ];
  return {
    ConditionExpression: terms.join(' AND '),
    ExpressionAttributeValues: Object.fromEntries(Object.entries(values).map(([name, value]) => [`:${name}`, value])),
  };
}

export function blockMark({ slot, signingRoot }: BlockEntry): Mark {
  return { ...NO_MARKS, kind: 'block', slot, signingRoot: signingRoot && encodeHex(signingRoot) };
}

export function attestationMark({ sourceEpoch, targetEpoch, signingRoot }: VoteEntry): Mark {
  return {
    slot: null,
    kind: 'attestation',
    sourceEpoch,
    targetEpoch,
    signingRoot: signingRoot && encodeHex(signingRoot),
  };
}

/** Marks are verified, or made of roots. */
export function rootOf(mark: Mark | undefined): Uint8Array | null {
  if (mark === undefined || mark.signingRoot === null) return null;
  const bytes = decodeHex(mark.signingRoot, 32);
  if (bytes === undefined) throw new TypeError('a root is 32 bytes of hex');
  return bytes;
}

/** The entries that marks are made of. */
export function historyOf(marks: readonly (Mark | undefined)[]): KeyHistory {
  return {
    blocks: marks.flatMap((mark) => (mark?.kind === 'block' ? [{ slot: mark.slot, signingRoot: rootOf(mark) }] : [])),
    attestations: marks.flatMap((mark) => {
      if (mark?.kind !== 'attestation') return [];
      const { sourceEpoch, targetEpoch } = mark;
      return [{ sourceEpoch, targetEpoch, signingRoot: rootOf(mark) }];
    }),
  };
}

export function highWaterMarks(mark: Mark | undefined): Marks {
  const { slot, sourceEpoch, targetEpoch } = mark ?? NO_MARKS;
  return { slot, sourceEpoch, targetEpoch };
}

/** Before the names of the numbers that a jump has raised since. */
const SIGNED = 'signed_';

export function numberAttributes({ slot, sourceEpoch, targetEpoch }: Marks, prefix = ''): Item {
  return {
    ...(slot === null ? {} : { [`${prefix}slot`]: { N: String(slot) } }),
    ...(sourceEpoch === null ? {} : { [`${prefix}source_epoch`]: { N: String(sourceEpoch) } }),
    ...(targetEpoch === null ? {} : { [`${prefix}target_epoch`]: { N: String(targetEpoch) } }),
  };
}

function decodeContent(kind: MarkKind, item: Item): MarkContent | undefined {
  const tenure = item['tenure'] === undefined ? 0 : safeInteger(item['tenure']);
  if (tenure === undefined || (tenure === 0 && item['tenure'] !== undefined)) return undefined;
  const root = item['signing_root'];
  const numbers = decodeNumbers(kind, item);
  if (numbers === undefined && root === undefined) return { mark: undefined, tenure, signed: undefined };
  const signingRoot = root === undefined ? null : decodeHex(root.S ?? '', 32);
  const signed = decodeNumbers(kind, item, SIGNED);
  if (numbers === undefined || numbers === 'damaged' || signed === 'damaged' || signingRoot === undefined)
    return undefined;
  const mark = markFrom(kind, numbers, signingRoot);
  return { mark, tenure, signed: signed && highWaterMarks(markFrom(kind, signed, null)) };
}

/** Undefined: none of them is there. */
function decodeNumbers(kind: MarkKind, item: Item, prefix = ''): readonly number[] | undefined | 'damaged' {
  const names = kind === 'block' ? ['slot'] : ['source_epoch', 'target_epoch'];
  const attributes = names.map((name) => item[prefix + name]);
  if (attributes.every((attribute) => attribute === undefined)) return undefined;
  const numbers = attributes.map(safeInteger).filter((number) => number !== undefined);
  return numbers.length === names.length ? numbers : 'damaged';
}

function markFrom(kind: MarkKind, [first = 0, second = 0]: readonly number[], signingRoot: Uint8Array | null): Mark {
  if (kind === 'block') return blockMark({ slot: first, signingRoot });
  return attestationMark({ sourceEpoch: first, targetEpoch: second, signingRoot });
}

export function safeInteger(attribute: AttributeValue | undefined): number | undefined {
  const value = Number(attribute?.N ?? 'absent');
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function codedFields(
  { kind, publicKey }: MarkKey,
  { mark, tenure, signed }: MarkContent,
): Parameters<RowIntegrity['code']> {
  const bytes = decodeHex(publicKey, 48);
  if (bytes === undefined) throw new TypeError('a public key is 48 bytes of hex');
  const root = rootOf(mark);
  const { slot, sourceEpoch, targetEpoch } = highWaterMarks(mark);
  const before = signed ?? NO_MARKS;
  const fields = [slot, sourceEpoch, targetEpoch, root, before.slot, before.sourceEpoch, before.targetEpoch];
  return [`dynamodb ${kind} v1`, bytes, [...fields, tenure]];
}

/** A mark that refuses what this one does, and all that the floor says; itself when it does so already. */
export function raisedMark(kind: MarkKind, mark: Mark | undefined, floor: Marks): Mark | undefined {
  const raised = kind === 'block' ? raisedBlock(mark, floor) : raisedAttestation(mark, floor);
  return raised !== undefined && mark !== undefined && isSameMark(raised, mark) ? mark : raised;
}

export function isSameMark(one: Mark, other: Mark): boolean {
  return one.signingRoot === other.signingRoot && hasSameNumbers(one, other);
}

function raisedBlock(mark: Mark | undefined, { slot }: Marks): Mark | undefined {
  if (slot === null || (mark?.kind === 'block' && mark.slot > slot)) return mark;
  return blockMark({ slot, signingRoot: null });
}

function raisedAttestation(mark: Mark | undefined, { sourceEpoch, targetEpoch }: Marks): Mark | undefined {
  if (sourceEpoch === null && targetEpoch === null) return mark;
  const own = mark?.kind === 'attestation' ? mark : undefined;
  const [source, target] = [sourceEpoch ?? 0, targetEpoch ?? 0];
  if (own !== undefined && own.sourceEpoch >= source && (own.targetEpoch > target || targetEpoch === null)) return own;
  return attestationMark({
    sourceEpoch: Math.max(own?.sourceEpoch ?? 0, source),
    targetEpoch: Math.max(own?.targetEpoch ?? 0, target),
    signingRoot: null,
  });
}

/** What a key has signed, without its message. */
export function unknownMark(kind: MarkKind, { slot, sourceEpoch, targetEpoch }: Marks): Mark {
  return markFrom(kind, kind === 'block' ? [slot ?? 0] : [sourceEpoch ?? 0, targetEpoch ?? 0], null);
}

export function hasSameNumbers(one: Marks, other: Marks): boolean {
  return !isRolledBack(one, other) && !isRolledBack(other, one);
}
