// JSON bytes → value, for bodies that are signed: nothing is accepted that another parser on the way may have read
// differently. JSON.parse decides what the text means; the scan ahead of it (json-scan.ts) only refuses. Bytes that
// are not UTF-8 are refused too. A number that is not written as a plain non-negative integer becomes NaN, which no
// schema of ours takes; in an ignored member it is ignored with it.

import { NOT_JSON, scanJson } from './json-scan.ts';

const PLAIN_INTEGER = /^[0-9]+$/;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

export type StrictJson =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly hint: string };

export function parseStrictJson(bytes: Uint8Array, maxValues?: number): StrictJson {
  try {
    const text = UTF8.decode(bytes);
    const { refusal, inexactNumbers } = scanJson(text, maxValues);
    if (refusal !== undefined) return { kind: 'refused', hint: refusal };
    return { kind: 'json', value: inexactNumbers ? JSON.parse(text, inexactToNaN) : JSON.parse(text) };
  } catch {
    return { kind: 'refused', hint: NOT_JSON };
  }
}

/** `context.source` is how the text spells a primitive (ECMA-262, JSON.parse source text access). */
function inexactToNaN(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && !PLAIN_INTEGER.test(context?.source ?? '') ? Number.NaN : value;
}
