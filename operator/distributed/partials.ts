// What a participant answered, read by hand: a vote passes here four times. An answer that is neither a partial
// signature nor a refusal of a signer (a page of a proxy, say) is none.

import { canonicalPublicKey, decodeHex } from '../../common/formats/hex.ts';
import { parseJson } from '../../common/formats/parse-json.ts';
import type { Answer } from './participants.ts';

export interface SaidRefusal {
  readonly kind: 'refused';
  readonly status: number;
  /** As the participant said it. */
  readonly body: Members;
  /** Of the request as a whole, not of one key of it. */
  readonly isOfAll: boolean;
}

/** Undefined: nothing that can be used. */
export type Said =
  | { readonly kind: 'signed'; readonly id: string; readonly root: string; readonly signature: Uint8Array }
  | SaidRefusal
  | undefined;

type Members = Readonly<Record<string, unknown>>;

/** @param keys composite keys that were asked for @returns what was said of each of them, in order */
export function readAnswer({ status, body }: Answer, keys: readonly string[], isBatch: boolean): readonly Said[] {
  const value = parseJson(body.toString('utf8'));
  if (status !== 200) return keys.map(() => readRefusal(membersOf(value), status, true));
  if (!isBatch) return [readPartial(membersOf(value))];
  const results = (Array.isArray(value) ? (value as unknown[]) : []).slice(0, keys.length).map(membersOf);
  const byKey = new Map(results.map((result) => [canonicalPublicKey(String(result['identifier'])), result]));
  return keys.map((key) => {
    const result = byKey.get(key) ?? {};
    const error = membersOf(result['error']);
    return result['error'] === undefined ? readPartial(result) : readRefusal(error, error['code'], false);
  });
}

function readPartial({ participant_id: id, signing_root: root, signature }: Members): Said {
  if (typeof id !== 'string' || typeof root !== 'string' || typeof signature !== 'string') return undefined;
  const bytes = decodeHex(signature, 96);
  if (bytes === undefined || !/^0x[0-9a-f]{64}$/.test(root)) return undefined;
  return { kind: 'signed', id, root, signature: bytes };
}

function readRefusal(body: Members, status: unknown, isOfAll: boolean): Said {
  const isOne = typeof status === 'number' && status >= 400 && status <= 499 && typeof body['reason'] === 'string';
  if (!isOne || body['signature'] !== undefined) return undefined;
  const said = SAID_OF_REFUSALS.map((name) => [name, textOf(body[name])]);
  return { kind: 'refused', status, body: { code: status, ...Object.fromEntries(said) }, isOfAll };
}

/** What a signer says of a refusal. A participant says nothing else to a client. */
const SAID_OF_REFUSALS = ['reason', 'message', 'request_id'] as const;
const MAX_SAID_CHARACTERS = 500;

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, MAX_SAID_CHARACTERS) : undefined;
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}
