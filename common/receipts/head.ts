// A head of a log: a C2SP tlog-checkpoint with one extension line (specification/receipts.md#head). It trusts a head
// only for the key that it is held against, and refuses every other spelling, so that one head has one digest.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../formats/parse-json.ts';
import type { BootIdentity, LogKind } from './identity.ts';

export const MAX_HEAD_BYTES = 8192;
/** Of earlier boots, which the first head of a boot names. */
export const MAX_NAMED_HEADS = 16;
export const MAX_RETENTION_DAYS = 3650;
const DAY_MS = 86_400_000;
const MAX_SIGNATURE_LINES = 16;
const ALGORITHM = Buffer.from([1]);
export const KEY_HASH_BYTES = 4;
export const HEAD_SIGNATURE_BYTES = 64;
const TEXT =
  /^strongroom\/receipts\/(attested|unattested)\/([0-9a-f]{32})\n(0|[1-9][0-9]{0,15})\n([^\n]{44})\n([^\n]+)\n$/;
export const SIGNATURE_LINE = /^— ([^ +]+) ([A-Za-z0-9+/]+={0,2})$/;

const count = z.int().min(0);
/** The year 9999. */
export const MAX_TIME_MS = 253_402_300_799_999;
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const word = z.string().regex(/^[A-Za-z0-9_:.-]{1,128}$/);
const statementSchema = z.strictObject({
  version: z.literal(1),
  sequence: count,
  time: count.max(MAX_TIME_MS),
  previous: digest.nullable(),
  before: z
    .strictObject({ heads: z.array(digest).max(MAX_NAMED_HEADS).readonly(), gap: z.literal('unreadable').nullable() })
    .nullable(),
  lost: count,
  closed: z.boolean(),
  slashing: z.strictObject({ store: word, revision: word }).nullable(),
  latch: z.enum(['open', 'sealed']).nullable(),
  auth_revision: count.nullable(),
  retention_days: count.min(1).max(MAX_RETENTION_DAYS).nullable(),
});

/** The extension line, by its names. */
export type HeadStatement = Readonly<Omit<z.infer<typeof statementSchema>, 'version'>>;

export interface LogHead {
  readonly kind: LogKind;
  readonly boot: string;
  readonly size: number;
  readonly root: Buffer;
  readonly statement: HeadStatement;
}

export interface ReadHead extends LogHead {
  /** SHA-256 of what is signed, hex. */
  readonly digest: string;
  readonly text: string;
  readonly signatureLines: readonly string[];
}

export function originOf(kind: LogKind, boot: string): string {
  return `strongroom/receipts/${kind}/${boot}`;
}

/** What the boot's key signs. */
export function headText({ kind, boot, size, root, statement }: LogHead): string {
  return `${originOf(kind, boot)}\n${size}\n${root.toString('base64')}\n${encodeStatement(statement)}\n`;
}

export function digestOfHead(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Entries under heads that are no later may be removed (specification/receipts.md#retention); null: none. */
export function removableBefore({
  time,
  retention_days,
}: Pick<HeadStatement, 'time' | 'retention_days'>): number | null {
  return retention_days === null ? null : time - retention_days * DAY_MS;
}

/** @param signature of headText() by the key of the boot */
export function signedHead(
  head: LogHead,
  { publicKey }: Pick<BootIdentity, 'publicKey'>,
  signature: Uint8Array,
): string {
  const origin = originOf(head.kind, head.boot);
  const signed = Buffer.concat([keyHash(origin, publicKey), signature]).toString('base64');
  return `${headText(head)}\n— ${origin} ${signed}\n`;
}

/** Undefined for a text that is no head; nothing is said of its signature. */
export function readHead(note: string): ReadHead | undefined {
  if (Buffer.byteLength(note) > MAX_HEAD_BYTES) return undefined;
  const end = note.indexOf('\n\n');
  const text = note.slice(0, end + 1);
  const signatureLines = note.slice(end + 2).split('\n');
  if (signatureLines.pop() !== '' || signatureLines.length < 1 || signatureLines.length > MAX_SIGNATURE_LINES) {
    return undefined;
  }
  const [, kind, boot = '', sizeText, rootText = '', line = ''] = TEXT.exec(text) ?? [];
  if (kind !== 'attested' && kind !== 'unattested') return undefined;
  const statement = readStatement(line);
  const size = Number(sizeText);
  const root = Buffer.from(rootText, 'base64');
  if (statement === undefined || !Number.isSafeInteger(size) || root.length !== 32) return undefined;
  const head = { kind, boot, size, root, statement } as const;
  if (headText(head) !== text || !signatureLines.every(isSignatureLine)) return undefined;
  return { ...head, text, digest: digestOfHead(text), signatureLines };
}

function isSignatureLine(line: string): boolean {
  const [, , base64] = SIGNATURE_LINE.exec(line) ?? [];
  return base64 !== undefined && Buffer.from(base64, 'base64').toString('base64') === base64;
}

function encodeStatement(statement: HeadStatement): string {
  const { sequence, time, previous, before, lost, closed, slashing, latch, auth_revision, retention_days } = statement;
  return JSON.stringify({
    ...{ version: 1, sequence, time, previous },
    before: before === null ? null : { heads: before.heads, gap: before.gap },
    ...{ lost, closed },
    slashing: slashing === null ? null : { store: slashing.store, revision: slashing.revision },
    ...{ latch, auth_revision, retention_days },
  });
}

function readStatement(line: string): HeadStatement | undefined {
  const parsed = statementSchema.safeParse(parseJson(line)).data;
  if (parsed === undefined) return undefined;
  const { previous, before, sequence } = parsed;
  const isFirst = sequence === 0;
  if ((previous === null) !== isFirst || (before === null) === isFirst) return undefined;
  const named = before?.heads ?? [];
  if (named.some((head, index) => index > 0 && head <= (named[index - 1] ?? ''))) return undefined;
  return before?.gap === 'unreadable' && named.length > 0 ? undefined : parsed;
}

/** C2SP signed-note, signature type 1. */
export function keyHash(origin: string, publicKey: Uint8Array): Buffer {
  const hash = createHash('sha256').update(`${origin}\n`).update(ALGORITHM).update(publicKey);
  return hash.digest().subarray(0, KEY_HASH_BYTES);
}
