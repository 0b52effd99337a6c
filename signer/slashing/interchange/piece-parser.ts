// Parses one large JSON object as its text comes, piece by piece. Strict: RFC 8259, no member twice, bounded depth,
// token length and number of values a piece.

import { setImmediate } from 'node:timers/promises';

export type JsonValue = string | number | boolean | null | JsonValue[] | { readonly [member: string]: JsonValue };

/** A member of the top object; `index` when it is an element of the streamed array. */
interface JsonPiece {
  readonly member: string;
  readonly index: number | undefined;
  readonly value: JsonValue;
}

/** The element it belongs to comes later, with the list empty. */
export interface JsonEntry {
  readonly element: number;
  readonly list: string;
  readonly index: number;
  readonly value: JsonValue;
}

interface PieceOptions {
  readonly streamedMember: string;
  /** Of an element: their entries are handed over one by one. */
  readonly lists: readonly string[];
  /** Before the piece of the element comes; what it throws ends the reading. */
  readonly onEntry: (entry: JsonEntry) => void;
}

const NO_OBJECT = 'the file is not a JSON object (a record inside a text: write it with `jq -r`)';
const MAX_DEPTH = 8;
const MAX_TOKEN_CHARACTERS = 4096;
const MAX_VALUES_PER_PIECE = 4_000_000;

interface Frame {
  readonly container: JsonValue[] | Record<string, JsonValue>;
  member: string | undefined;
  elements: number;
}

type Expected = 'value' | 'value or ]' | 'member name' | 'member name or }' | ':' | ', or end' | 'nothing more';

const TOKEN = /[\t\n\r ]*(?:([{}[\]:,])|("(?:[^"\\]|\\[\s\S])*")|(-?[0-9][0-9.eE+-]*|true|false|null))/y;

class PieceParser {
  readonly #options: PieceOptions;
  readonly #frames: Frame[] = [];
  #expected: Expected = 'value';
  #rest = '';
  #values = 0;
  #valuesBeforeList = 0;

  constructor(options: PieceOptions) {
    this.#options = options;
  }

  place(): string {
    return this.#frames
      .map(({ container, member, elements }, depth) => {
        if (Array.isArray(container)) return elements > 0 ? `[${elements - 1}]` : '';
        return member === undefined ? '' : `${depth > 0 ? '.' : ''}${member}`;
      })
      .join('');
  }

  /** @param length of the file, in bytes, with the end of its text */
  *feed(text: string, length?: number): Generator<JsonPiece> {
    const isEnd = length !== undefined;
    const input = this.#rest + text;
    let at = 0;
    while (true) {
      TOKEN.lastIndex = at;
      const match = TOKEN.exec(input);
      // A number that touches the end of the input may go on in the next one.
      const isOpen = match?.[3] !== undefined && TOKEN.lastIndex === input.length && !isEnd;
      if (match === null || isOpen) break;
      at = TOKEN.lastIndex;
      const piece = this.#token(match);
      if (piece !== undefined) yield piece;
    }
    this.#rest = input.slice(at).replace(/^[\t\n\r ]+/, '');
    if (this.#rest.length > MAX_TOKEN_CHARACTERS) throw this.#error('the JSON is malformed');
    if (!isEnd) return;
    if (this.#rest !== '' && !this.#rest.startsWith('"')) throw this.#error('the JSON is malformed');
    if (this.#rest !== '' || this.#expected !== 'nothing more')
      throw this.#error(`the file ends early, after ${length} bytes`);
  }

  #token([, punctuation, string, literal]: RegExpExecArray): JsonPiece | undefined {
    if (punctuation === undefined) return this.#scalar(this.#parse(string ?? literal ?? ''), string !== undefined);
    switch (punctuation) {
      case '{':
        return this.#open({}, 'member name or }');
      case '[':
        return this.#open([], 'value or ]');
      case '}':
      case ']':
        return this.#close(punctuation);
      case ':':
        if (this.#expected !== ':') throw this.#error('the JSON is malformed');
        this.#expected = 'value';
        return undefined;
      default:
        if (this.#expected !== ', or end') throw this.#error('the JSON is malformed');
        this.#expected = Array.isArray(this.#top().container) ? 'value' : 'member name';
        return undefined;
    }
  }

  #parse(token: string): JsonValue {
    if (token.length > MAX_TOKEN_CHARACTERS) throw this.#error('a string or number is too long');
    try {
      return JSON.parse(token) as JsonValue;
    } catch {
      throw this.#error('the JSON is malformed');
    }
  }

  #scalar(value: JsonValue, isString: boolean): JsonPiece | undefined {
    if (isString && (this.#expected === 'member name' || this.#expected === 'member name or }')) {
      const frame = this.#top();
      if (Object.hasOwn(frame.container, String(value))) throw this.#error('an object has a member twice');
      frame.member = String(value);
      this.#expected = ':';
      return undefined;
    }
    this.#begin();
    return this.#finish(value);
  }

  #open(container: Frame['container'], expected: Expected): undefined {
    if (this.#frames.length > 0) this.#begin();
    else if (Array.isArray(container)) throw this.#error('the file is not a JSON object');
    else if (this.#expected !== 'value') throw this.#error('the JSON is malformed');
    if (this.#frames.length === MAX_DEPTH) throw this.#error('the JSON is nested too deeply');
    this.#frames.push({ container, member: undefined, elements: 0 });
    if (this.#frames.length === 4) this.#valuesBeforeList = this.#values;
    this.#expected = expected;
  }

  #close(punctuation: string): JsonPiece | undefined {
    const frame = this.#frames.at(-1);
    const isArray = Array.isArray(frame?.container);
    const isAllowed = this.#expected === ', or end' || this.#expected === (isArray ? 'value or ]' : 'member name or }');
    if (frame === undefined || !isAllowed || isArray !== (punctuation === ']'))
      throw this.#error('the JSON is malformed');
    this.#frames.pop();
    if (this.#frames.length > 0) return this.#finish(frame.container);
    this.#expected = 'nothing more';
    return undefined;
  }

  #begin(): void {
    if (this.#frames.length === 0) throw this.#error(NO_OBJECT);
    if (this.#expected !== 'value' && this.#expected !== 'value or ]') throw this.#error('the JSON is malformed');
    this.#top().elements += 1;
    this.#values += 1;
    if (this.#values > MAX_VALUES_PER_PIECE) throw this.#error('too many values');
  }

  #finish(value: JsonValue): JsonPiece | undefined {
    this.#expected = ', or end';
    const [top, streamed] = this.#frames;
    const member = top?.member;
    const { container, member: name, elements } = this.#top();
    if (this.#frames.length === 1 && member !== undefined) {
      this.#values = 0;
      // Its name stays, so that it is noticed when it comes twice.
      Object.defineProperty(container, member, { value: null });
      return { member, index: undefined, value };
    }
    if (this.#frames.length === 2 && member === this.#options.streamedMember && Array.isArray(streamed?.container)) {
      this.#values = 0;
      return { member, index: elements - 1, value };
    }
    const list = this.#listOfEntries();
    if (list !== undefined) {
      this.#values = this.#valuesBeforeList; // what was handed over takes no memory here
      this.#options.onEntry({ element: (streamed?.elements ?? 0) - 1, list, index: elements - 1, value });
    } else if (Array.isArray(container)) container.push(value);
    else Object.defineProperty(container, String(name), { value, enumerable: true });
    return undefined;
  }

  #listOfEntries(): string | undefined {
    const [top, streamed, element, list] = this.#frames;
    if (this.#frames.length !== 4 || top?.member !== this.#options.streamedMember) return undefined;
    const isList = Array.isArray(streamed?.container) && Array.isArray(list?.container);
    return isList && element?.member !== undefined && this.#options.lists.includes(element.member)
      ? element.member
      : undefined;
  }

  #top(): Frame {
    const frame = this.#frames.at(-1);
    if (frame === undefined) throw this.#error('the file is not a JSON object');
    return frame;
  }

  #error(problem: string): InterchangeError {
    return new InterchangeError(this.place(), problem);
  }
}

/** `data[17].signed_blocks[3].slot`; nothing of the file's content. */
export class InterchangeError extends Error {
  readonly place: string;

  constructor(place: string, problem: string) {
    super(place === '' ? problem : `${place}: ${problem}`);
    this.name = 'InterchangeError';
    this.place = place;
  }
}

// Memory is bounded by the largest piece, whatever the size of the file.

/** A few milliseconds of the event loop. */
const TURN_BYTES = 64 * 1024;
/** @throws InterchangeError, also for bytes that are not UTF-8 */
export async function* readJsonPieces(
  source: AsyncIterable<Uint8Array>,
  options: PieceOptions,
): AsyncGenerator<JsonPiece> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const parser = new PieceParser(options);
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw new InterchangeError(parser.place(), 'the file is not UTF-8 text');
    }
  };
  let bytesInTurn = 0;
  let length = 0;
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += TURN_BYTES) {
      const part = bytes.subarray(at, at + TURN_BYTES);
      bytesInTurn += part.length;
      if (bytesInTurn > TURN_BYTES) {
        await setImmediate();
        bytesInTurn = part.length;
      }
      length += part.length;
      yield* parser.feed(decode(part));
    }
  }
  yield* parser.feed(decode(), length);
}
