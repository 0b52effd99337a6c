// The rows of the signer-state table (specification/tables.md#state-table), as items. The HMAC of a row decides whether
// it is valid. A latch counts in any form.

import type { AuthHead, AuthRow } from '../auth/stateful/state.ts';
import type { Item } from '../aws/dynamodb.ts';

export const MASTER_KEY = 'MASTER_KEY';
export const ROOT_TOKEN_BOOTSTRAP = 'ROOT_TOKEN_BOOTSTRAP';
export const SEAL_OVERRIDE = 'SEAL_OVERRIDE';
export const AUTH_REVISION = 'AUTH_REVISION';

export interface MasterKeyRow {
  readonly generation: number;
  readonly record: string;
  /** Where the key comes from (common/attestation/key-evidence.ts); undefined when no enclave wrote the row. */
  readonly evidence: string | undefined;
  /** The seal that a start has to account for, when its latch is gone; undefined: none. */
  readonly seal?: string | undefined;
  readonly removal?: { readonly seal: string; readonly evidence: string } | undefined;
}

export interface RootTokenRow {
  /** Armored age text, so that `age -d` opens it. */
  readonly value: string;
  readonly createdAt: string;
  /** Who made it (common/attestation/row-evidence.ts); undefined when no enclave did. */
  readonly evidence: string | undefined;
}

/**
 * The latch, the row SEAL_OVERRIDE: while it is there every replica stays sealed. Members are null when an operator
 * made the row by hand without them: it seals all the same.
 */
export interface Latch {
  readonly reason: string | null;
  readonly accessor: string | null;
  /** RFC 3339. */
  readonly sealedAt: string | null;
}

export class MalformedRow extends Error {
  constructor(pk: string, problem: string) {
    super(`the row ${pk} ${problem}`);
    this.name = 'MalformedRow';
  }
}

export function encodeMasterKey({ generation, record, evidence, seal, removal }: MasterKeyRow): Item {
  const removed = { removed_seal: removal?.seal, removal: removal?.evidence };
  return { generation: { N: String(generation) }, ...texts({ pk: MASTER_KEY, record, evidence, seal, ...removed }) };
}

/** Those that are there. */
function texts(attributes: Readonly<Record<string, string | null | undefined>>): Item {
  const present = Object.entries(attributes).flatMap(([name, S]) => (S == null ? [] : [[name, { S }] as const]));
  return Object.fromEntries(present);
}

/** Whatever is missing comes out as no record and no generation: the boot refuses such a row (startup failure 9). */
export function decodeMasterKey(item: Item | undefined): MasterKeyRow | undefined {
  if (item === undefined) return undefined;
  const removedSeal = textOf(item, 'removed_seal');
  const removal = textOf(item, 'removal');
  return {
    generation: Number(item['generation']?.N ?? -1),
    record: item['record']?.S ?? '',
    evidence: textOf(item, 'evidence'),
    seal: textOf(item, 'seal'),
    removal: (removal ?? removedSeal) === undefined ? undefined : { seal: removedSeal ?? '', evidence: removal ?? '' },
  };
}

function textOf(item: Item, attribute: string): string | undefined {
  const value = item[attribute];
  return value === undefined ? undefined : (value.S ?? '');
}

export function encodeRootToken({ value, createdAt, evidence }: RootTokenRow): Item {
  return texts({ pk: ROOT_TOKEN_BOOTSTRAP, value, created_at: createdAt, evidence });
}

export function decodeRootToken(item: Item | undefined): RootTokenRow | undefined {
  if (item === undefined) return undefined;
  const [value = '', createdAt = ''] = [textOf(item, 'value'), textOf(item, 'created_at')];
  return { value, createdAt, evidence: textOf(item, 'evidence') };
}

export function sealText({ reason, accessor, sealedAt }: Latch): string {
  return JSON.stringify({ sealed_at: sealedAt, reason, accessor });
}

export function encodeLatch({ reason, accessor, sealedAt }: Latch): Item {
  return texts({ pk: SEAL_OVERRIDE, reason, accessor, sealed_at: sealedAt });
}

export function decodeLatch(item: Item | undefined): Latch | undefined {
  if (item === undefined) return undefined;
  const sealedAt = item['sealed_at']?.S ?? '';
  return {
    reason: item['reason']?.S ?? null,
    accessor: item['accessor']?.S ?? null,
    sealedAt: Number.isNaN(Date.parse(sealedAt)) ? null : new Date(sealedAt).toISOString(),
  };
}

export function encodeAuthHead({ revision, manifest, mac }: AuthHead): Item {
  return { pk: { S: AUTH_REVISION }, revision: { N: String(revision) }, manifest: { S: manifest }, mac: { B: mac } };
}

export function decodeAuthHead(item: Item | undefined): AuthHead | undefined {
  if (item === undefined) return undefined;
  const { manifest, mac } = item;
  if (manifest?.S === undefined || mac?.B === undefined) {
    throw new MalformedRow(AUTH_REVISION, 'has no `manifest` or no `mac`');
  }
  return { revision: wholeNumber(item, AUTH_REVISION, 'revision'), manifest: manifest.S, mac: mac.B };
}

export function encodeAuthRow({ pk, revision, content, mac }: AuthRow): Item {
  return { pk: { S: pk }, revision: { N: String(revision) }, content: { S: content }, mac: { B: mac } };
}

/** Members that are not there come out empty: the HMAC refuses the row, as it does every altered one. */
export function decodeAuthRow(item: Item): AuthRow {
  return {
    pk: item['pk']?.S ?? '',
    revision: Number(item['revision']?.N ?? -1),
    content: item['content']?.S ?? '',
    mac: item['mac']?.B ?? new Uint8Array(),
  };
}

export function wholeNumber(item: Item, pk: string, attribute: string): number {
  const value = Number(item[attribute]?.N ?? Number.NaN);
  if (!Number.isSafeInteger(value) || value < 0) throw new MalformedRow(pk, `has no whole number \`${attribute}\``);
  return value;
}
