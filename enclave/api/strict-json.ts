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
/** Member names of one object that are looked through one by one. */
const LONGEST_NAME_LIST = 16;
const PLAIN_INTEGER = /^[0-9]+$/;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

const [QUOTE, COMMA, COLON, BACKSLASH, MINUS, POINT] = [0x22, 0x2c, 0x3a, 0x5c, 0x2d, 0x2e];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
const [SPACE, TAB, LINE_FEED, CARRIAGE_RETURN] = [0x20, 0x09, 0x0a, 0x0d];
const [UPPER_E, LOWER_E] = [0x45, 0x65];

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

/**
 * Sound on valid JSON; on anything else it only has to end, because JSON.parse refuses that afterwards. By character codes
 * and positions: it runs over every body, and a text of one character for each step costs more than the parse itself.
 */
function scan(text: string): { readonly refusal?: string; readonly inexactNumbers: boolean } {
  /** The member names seen in each open object; null for an open array. */
  const open: (SeenNames | null)[] = [];
  let inexactNumbers = false;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at);
        const names = isMemberName(text, end) ? open.at(-1) : null;
        if (names) {
          const name = unescaped(text, at, end);
          if (!names.add(name)) return { refusal: `the member ${quote(name)} is given twice`, inexactNumbers };
        }
        at = end;
        break;
      }
      case COMMA:
        values += 1;
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        values += 1;
        if (open.push(text.charCodeAt(at) === OPEN_OBJECT ? new SeenNames() : null) > MAX_JSON_DEPTH) {
          return { refusal: `the body is nested deeper than ${MAX_JSON_DEPTH} levels`, inexactNumbers };
        }
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        open.pop();
        break;
      case MINUS:
      case POINT:
      case UPPER_E:
        inexactNumbers = true;
        break;
      case LOWER_E: // An exponent, unless it ends `true` or `false`.
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

/** A list while it is short, as it is in every message of ours: a Set for each object costs more than the rest of the scan. */
class SeenNames {
  readonly #list: string[] = [];
  #set: Set<string> | undefined;

  /** False when it was there. */
  add(name: string): boolean {
    if (this.#set === undefined) {
      if (this.#list.includes(name)) return false;
      if (this.#list.push(name) === LONGEST_NAME_LIST) this.#set = new Set(this.#list);
      return true;
    }
    const known = this.#set.size;
    return this.#set.add(name).size > known;
  }
}

/** The index of the quote that ends the string opened at `start`; past the text when there is none. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, quoteAt: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(quoteAt - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}

function isMemberName(text: string, end: number): boolean {
  for (let next = end + 1; ; next++) {
    switch (text.charCodeAt(next)) {
      case SPACE:
      case TAB:
      case LINE_FEED:
      case CARRIAGE_RETURN:
        break;
      default:
        return text.charCodeAt(next) === COLON;
    }
  }
}

/** Two spellings of one name (`"type"`, `"\u0074ype"`) are one name. */
function unescaped(text: string, start: number, end: number): string {
  const name = text.slice(start + 1, end);
  return name.includes('\\') ? String(JSON.parse(`"${name}"`)) : name;
}

function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED_CHARACTERS ? `${name.slice(0, MAX_QUOTED_CHARACTERS)}…` : name);
}
