// JSON bytes → value, for bodies that are signed: nothing is accepted that another parser on the way may have read
// differently. JSON.parse decides what the text means; a scan ahead of it only refuses: member names given twice (the
// parsers of this world keep the first, the last, or both), deep nesting, more values than any message has. Bytes that
// are not UTF-8 are refused too. A number that is not written as a plain non-negative integer becomes NaN, which no
// schema of ours takes; in an ignored member it is ignored with it.

/** A full block, the deepest message, has nine levels. Ignored members count too. */
export const MAX_JSON_DEPTH = 32;

/** A full block at each of its limits has some 11,000. */
export const MAX_JSON_VALUES = 20_000;

const MAX_QUOTED_CHARACTERS = 40;
const PLAIN_INTEGER = /^[0-9]+$/;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

export type StrictJson =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly hint: string };

export function parseStrictJson(bytes: Uint8Array): StrictJson {
  try {
    const text = UTF8.decode(bytes);
    const { refusal, inexactNumbers } = scan(text);
    if (refusal !== undefined) return { kind: 'refused', hint: refusal };
    return { kind: 'json', value: inexactNumbers ? JSON.parse(text, inexactToNaN) : JSON.parse(text) };
  } catch {
    return { kind: 'refused', hint: 'the body is not JSON in UTF-8' };
  }
}

/** `context.source` is how the text spells a primitive (ECMA-262, JSON.parse source text access). */
function inexactToNaN(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && !PLAIN_INTEGER.test(context?.source ?? '') ? Number.NaN : value;
}

/** Sound on valid JSON; on anything else it only has to end, because JSON.parse refuses that afterwards. */
function scan(text: string): { readonly refusal?: string; readonly inexactNumbers: boolean } {
  /** The member names seen in each open object; null for an open array. */
  const open: (Set<string> | null)[] = [];
  let inexactNumbers = false;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"': {
        const end = endOfString(text, at);
        const names = isMemberName(text, end) ? open.at(-1) : null;
        if (names) {
          const name = unescaped(text.slice(at, end + 1));
          if (names.has(name)) return { refusal: `the member ${quote(name)} is given twice`, inexactNumbers };
          names.add(name);
        }
        at = end;
        break;
      }
      case ',':
        values += 1;
        break;
      case '{':
      case '[':
        values += 1;
        if (open.push(text[at] === '{' ? new Set() : null) > MAX_JSON_DEPTH) {
          return { refusal: `the body is nested deeper than ${MAX_JSON_DEPTH} levels`, inexactNumbers };
        }
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case '-':
      case '.':
      case 'E':
        inexactNumbers = true;
        break;
      case 'e': // An exponent, unless it ends `true` or `false`.
        if (/[0-9]/.test(text[at - 1] ?? '')) inexactNumbers = true;
        break;
      default:
    }
    if (values > MAX_JSON_VALUES) {
      return { refusal: `the body has more than ${MAX_JSON_VALUES} values`, inexactNumbers };
    }
  }
  return { inexactNumbers };
}

/** The index of the quote that ends the string opened at `start`; past the text when there is none. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, quoteAt: number): boolean {
  let backslashes = 0;
  while (text[quoteAt - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}

function isMemberName(text: string, end: number): boolean {
  let next = end + 1;
  while (text[next] === ' ' || text[next] === '\n' || text[next] === '\r' || text[next] === '\t') next += 1;
  return text[next] === ':';
}

/** Two spellings of one name (`"type"`, `"\u0074ype"`) are one name. */
function unescaped(literal: string): string {
  return literal.includes('\\') ? String(JSON.parse(literal)) : literal.slice(1, -1);
}

function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED_CHARACTERS ? `${name.slice(0, MAX_QUOTED_CHARACTERS)}…` : name);
}
