// The parser of batches (specification/signing.md#batches). It refuses a batch whole.

import { canonicalPublicKey } from '../../common/formats/hex.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import type { ErrorReason } from '../api/errors.ts';
import { readRequest } from './parse.ts';
import type { OperationRow } from './row.ts';
import { ROWS } from './rows.ts';
import type { SignRequest } from './sign-request.ts';

/** Each key also needs a place in the queue of permits (signing.queue_buffer_size). */
const MAX_BATCH_KEYS = 2048;

export interface SignBatch {
  readonly identifiers: string[];
  readonly publicKeys: string[];
  readonly request: SignRequest;
}

type ParsedSignBatch =
  | { readonly kind: 'batch'; readonly batch: SignBatch }
  | { readonly kind: 'refused'; readonly reason: ErrorReason; readonly hint: string };

export function parseSignBatch(body: Uint8Array): ParsedSignBatch {
  const json = parseStrictJson(body);
  if (json.kind === 'refused') return malformed(json.hint);
  const { value } = json;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return malformed('the body is not a JSON object');
  }
  const { identifiers, signing_request } = value as Readonly<Record<string, unknown>>;
  const keys = readIdentifiers(identifiers);
  if ('kind' in keys) return keys;
  const parsed = readRequest(signing_request);
  if (parsed.kind === 'refused') {
    return { kind: 'refused', reason: parsed.reason, hint: `signing_request: ${parsed.hint}` };
  }
  const { request } = parsed;
  const row: OperationRow = ROWS[request.operation];
  if (row.isForBatches !== true) {
    const hint = 'signing_request.type: a batch takes messages that many keys sign alike, and no others';
    return { kind: 'refused', reason: 'unsupported_operation', hint };
  }
  return { kind: 'batch', batch: { ...keys, request } };
}

type Refusal = Extract<ParsedSignBatch, { kind: 'refused' }>;

function malformed(hint: string): Refusal {
  return { kind: 'refused', reason: 'malformed_body', hint };
}

function readIdentifiers(value: unknown): Omit<SignBatch, 'request'> | Refusal {
  if (!Array.isArray(value)) return malformed('identifiers: expected an array of public keys');
  const identifiers = value as unknown[];
  if (identifiers.length === 0) return malformed('identifiers: expected one public key at least');
  if (identifiers.length > MAX_BATCH_KEYS) {
    return { kind: 'refused', reason: 'too_many_items', hint: `identifiers: at most ${MAX_BATCH_KEYS}` };
  }
  const publicKeys = new Set<string>();
  for (const [place, identifier] of identifiers.entries()) {
    const canonical = typeof identifier === 'string' ? spelledCanonically(identifier) : undefined;
    if (canonical === undefined) return malformed(`identifiers.${place}: expected hex of 48 bytes`);
    if (publicKeys.size === publicKeys.add(canonical).size) {
      return malformed(`identifiers.${place}: this key is named already`);
    }
  }
  return { identifiers: identifiers as string[], publicKeys: [...publicKeys] };
}

/** Nearly every client spells keys as the signer lists them. */
const CANONICAL = /^0x[0-9a-f]{96}$/;

function spelledCanonically(identifier: string): string | undefined {
  return CANONICAL.test(identifier) ? identifier : canonicalPublicKey(identifier);
}
