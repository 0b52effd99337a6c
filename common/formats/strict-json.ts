// JSON bytes → value, for bodies that are signed: nothing is accepted that another parser on the way may have read
// differently. JSON.parse decides what the text means; the scan ahead of it only refuses (docs/decisions/0002), so a
// body of 2 MB blocks the main thread for a few milliseconds only. A number that is not written as a plain non-negative
// integer becomes NaN, which no schema of ours takes.

const PLAIN_INTEGER = /^[0-9]+$/;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

type StrictJson =
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

/** A full block, the deepest message, has nine levels. */
export const MAX_JSON_DEPTH = 32;

/** A full block at each of its limits has some 11,000. */
export const MAX_JSON_VALUES = 20_000;

/** Of one object: JSON.parse makes a larger one slowly. */
export const MAX_JSON_MEMBERS = 1_000;

/** JSON.parse hands over each value of a body with a number that is no plain integer. */
export const MAX_JSON_VALUES_BESIDE_INEXACT = 5_000;

export const NOT_JSON = 'the body is not JSON in UTF-8';

/** The name as it is written: none of ours has an escape. */
const MAX_ESCAPED_NAME_CHARACTERS = 128;
const MAX_QUOTED_CHARACTERS = 40;
const LITERALS = ['true', 'false', 'null'] as const;

// V8 compares with the members of a destructured list three times as slowly.
const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const UPPER_E = 0x45;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_E = 0x65;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A value may come when this is at most FIRST_VALUE. */
const VALUE = 0;
const FIRST_VALUE = 1;
const NAME = 2;
const FIRST_NAME = 3;
const MEMBER_COLON = 4;
const AFTER_VALUE = 5;

interface JsonScan {
  readonly refusal?: string;
  readonly inexactNumbers: boolean;
}

interface Scan {
  readonly text: string;
  readonly open: (SeenNames | null)[];
  at: number;
  next: number;
  values: number;
  inexactNumbers: boolean;
}

/** Sound on valid JSON. What else it lets through is refused by JSON.parse afterwards. */
function scanJson(text: string, maxValues: number = MAX_JSON_VALUES): JsonScan {
  const scan: Scan = { text, open: [], at: 0, next: VALUE, values: 1, inexactNumbers: false };
  let refusal: string | undefined;
  while (refusal === undefined && scan.at < text.length) {
    refusal = step(scan);
    if (scan.values > maxValues) refusal ??= `the body has more than ${maxValues} values`;
  }
  refusal ??= excessBesideInexact(scan);
  const { inexactNumbers } = scan;
  return refusal === undefined ? { inexactNumbers } : { refusal, inexactNumbers };
}

function step(scan: Scan): string | undefined {
  const code = scan.text.charCodeAt(scan.at);
  switch (code) {
    case SPACE:
    case LINE_FEED:
    case CARRIAGE_RETURN:
    case TAB:
      scan.at = endOfSpace(scan.text, scan.at);
      return undefined;
    case QUOTE:
      return string(scan);
    case OPEN_OBJECT:
      return opening(scan, new SeenNames(), FIRST_NAME);
    case OPEN_ARRAY:
      return opening(scan, null, FIRST_VALUE);
    case CLOSE_OBJECT:
      return closing(scan, FIRST_NAME);
    case CLOSE_ARRAY:
      return closing(scan, FIRST_VALUE);
    case COLON:
      return advance(scan, scan.next === MEMBER_COLON, VALUE);
    case COMMA:
      scan.values += 1;
      return advance(scan, scan.next === AFTER_VALUE && scan.open.length > 0, scan.open.at(-1) === null ? VALUE : NAME);
    default:
      return scalar(scan, code);
  }
}

function advance(scan: Scan, isPossible: boolean, next: number): string | undefined {
  if (!isPossible) return NOT_JSON;
  scan.at += 1;
  scan.next = next;
  return undefined;
}

function opening(scan: Scan, names: SeenNames | null, next: number): string | undefined {
  scan.values += 1;
  if (scan.open.push(names) > MAX_JSON_DEPTH) return `the body is nested deeper than ${MAX_JSON_DEPTH} levels`;
  return advance(scan, scan.next <= FIRST_VALUE, next);
}

/** @param whenEmpty what is expected when it has nothing yet */
function closing(scan: Scan, whenEmpty: typeof FIRST_NAME | typeof FIRST_VALUE): string | undefined {
  const isArray = scan.open.at(-1) === null;
  const isOpen = scan.open.length > 0 && isArray === (whenEmpty === FIRST_VALUE);
  scan.open.pop();
  return advance(scan, isOpen && (scan.next === AFTER_VALUE || scan.next === whenEmpty), AFTER_VALUE);
}

function string(scan: Scan): string | undefined {
  const { text, at, next } = scan;
  const end = endOfString(text, at);
  scan.at = end;
  if (next <= FIRST_VALUE) return advance(scan, true, AFTER_VALUE);
  if (next !== NAME && next !== FIRST_NAME) return NOT_JSON;
  const name = unescaped(text.slice(at + 1, end));
  if (name === undefined) return `a member name with escapes has more than ${MAX_ESCAPED_NAME_CHARACTERS} characters`;
  const seen = scan.open.at(-1);
  if (seen?.add(name) === false) return `the member ${quote(name)} is given twice`;
  if (seen != null && seen.size > MAX_JSON_MEMBERS) return `an object has more than ${MAX_JSON_MEMBERS} members`;
  return advance(scan, true, MEMBER_COLON);
}

function scalar(scan: Scan, code: number): string | undefined {
  const { text, at, next } = scan;
  if (next > FIRST_VALUE) return NOT_JSON;
  if (code === MINUS || isDigit(code)) {
    const digits = endOfDigits(text, at);
    scan.at = endOfNumber(text, digits);
    if (digits === at || scan.at > digits) scan.inexactNumbers = true;
  } else {
    const literal = LITERALS.find((word) => text.startsWith(word, at));
    if (literal === undefined) return NOT_JSON;
    scan.at += literal.length;
  }
  scan.next = AFTER_VALUE;
  return undefined;
}

function excessBesideInexact({ values, inexactNumbers }: Scan): string | undefined {
  if (!inexactNumbers || values <= MAX_JSON_VALUES_BESIDE_INEXACT) return undefined;
  return `the body has more than ${MAX_JSON_VALUES_BESIDE_INEXACT} values and a number that is no plain integer`;
}

/** The position after the text when there is no such character. */
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  return text.charCodeAt(end - 1) === BACKSLASH ? endOfEscapedString(text, start) : end;
}

/** A search for the next quote costs as much as twenty characters, and there may be a quote in every two. */
function endOfEscapedString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

function endOfSpace(text: string, start: number): number {
  for (let at = start; ; at++) {
    const code = text.charCodeAt(at);
    if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) return at;
  }
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (at < text.length && isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

function endOfNumber(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    const isSign = code === MINUS || code === PLUS || code === POINT || code === LOWER_E || code === UPPER_E;
    if (!isSign && !isDigit(code)) break;
    at += 1;
  }
  return at;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** `"type"` and `"\u0074ype"` are one name. Undefined when it is too long to be worked out. */
function unescaped(name: string): string | undefined {
  if (!name.includes('\\')) return name;
  return name.length > MAX_ESCAPED_NAME_CHARACTERS ? undefined : String(JSON.parse(`"${name}"`));
}

function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED_CHARACTERS ? `${name.slice(0, MAX_QUOTED_CHARACTERS)}…` : name);
}

const LONGEST_NAME_LIST = 16;

/** A list while it is short: a Set for each object costs more than the rest of the scan. */
class SeenNames {
  readonly #list: string[] = [];
  #set: Set<string> | undefined;

  get size(): number {
    return this.#set?.size ?? this.#list.length;
  }

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
