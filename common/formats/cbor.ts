// CBOR (RFC 8949) as NSM messages, attestation documents and CMW records use it. What is not well formed, is nested
// deeply, repeats a key, or has bytes left over is refused.

import { isUtf8 } from 'node:buffer';

/** Integers beyond 2^53 are bigints. */
export type CborValue =
  | number
  | bigint
  | string
  | boolean
  | null
  | Buffer
  | readonly CborValue[]
  | ReadonlyMap<string | number | bigint, CborValue>;

export class CborError extends Error {
  constructor(problem: string) {
    super(`CBOR: ${problem}`);
    this.name = 'CborError';
  }
}

const MAX_DEPTH = 8;
const UNSIGNED = 0;
const NEGATIVE = 1;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;
const SIMPLE = 7;
/** RFC 8949 §3.3, without `undefined` (23). */
const SIMPLE_VALUES: readonly (readonly [code: number, value: false | true | null])[] = [
  [20, false],
  [21, true],
  [22, null],
];
const BREAK = 0xff;

export function encodeCbor(value: CborValue): Buffer {
  const parts: Uint8Array[] = [];
  write(value, parts);
  return Buffer.concat(parts);
}

function write(value: CborValue, parts: Uint8Array[]): void {
  if (typeof value === 'number' || typeof value === 'bigint') {
    if (typeof value === 'number' && !Number.isSafeInteger(value))
      throw new CborError('a number that is not a whole one');
    parts.push(value < 0 ? head(NEGATIVE, -1n - BigInt(value)) : head(UNSIGNED, value));
  } else if (typeof value === 'string') {
    const text = Buffer.from(value);
    parts.push(head(TEXT, text.length), text);
  } else if (value instanceof Uint8Array) {
    parts.push(head(BYTES, value.length), value);
  } else if (Array.isArray(value)) {
    parts.push(head(ARRAY, value.length));
    for (const member of value) write(member, parts);
  } else if (value instanceof Map) {
    parts.push(head(MAP, value.size));
    for (const entry of value) for (const item of entry) write(item, parts);
  } else {
    const [code] = SIMPLE_VALUES.find(([, simple]) => simple === value) ?? [];
    if (code === undefined) throw new CborError('a value of a kind that is not expected');
    parts.push(head(SIMPLE, code));
  }
}

function head(major: number, argument: number | bigint): Buffer {
  const first = major << 5;
  if (argument < 24) return Buffer.from([first | Number(argument)]);
  const size = argument < 2 ** 8 ? 1 : argument < 2 ** 16 ? 2 : argument < 2 ** 32 ? 4 : 8;
  if (argument >= 2n ** 64n) throw new CborError('a number of more than 64 bits');
  const bytes = Buffer.alloc(9);
  bytes[0] = first | (24 + Math.log2(size));
  bytes.writeBigUInt64BE(BigInt(argument) << BigInt(64 - 8 * size), 1);
  return bytes.subarray(0, 1 + size);
}

/** @param options.tag may stand before the item, and is dropped @throws CborError */
export function decodeCbor(bytes: Uint8Array, { tag }: { readonly tag?: number } = {}): CborValue {
  const reader = new Reader(bytes);
  const value = reader.item(tag !== undefined && reader.drops(tag) ? 1 : 0);
  if (reader.left > 0) throw new CborError(`${reader.left} bytes after the item`);
  return value;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  drops(tag: number): boolean {
    if ((this.#bytes[this.#at] ?? 0) >> 5 !== TAG) return false;
    const { argument } = this.#head();
    if (argument !== BigInt(tag)) throw new CborError('a value of a kind that is not expected');
    return true;
  }

  item(depth: number): CborValue {
    if (depth > MAX_DEPTH) throw new CborError(`nested deeper than ${MAX_DEPTH}`);
    const { major, argument } = this.#head();
    switch (major) {
      case UNSIGNED:
        return whole(definite(argument));
      case NEGATIVE:
        return whole(-1n - definite(argument));
      case BYTES:
        // a copy: the document may be larger than what is kept of it
        return Buffer.from(this.#take(definite(argument)));
      case TEXT:
        return this.#text(definite(argument));
      case ARRAY: {
        const members: CborValue[] = [];
        this.#repeat(argument, () => members.push(this.item(depth + 1)));
        return members;
      }
      case MAP: {
        const entries = new Map<string | number | bigint, CborValue>();
        this.#repeat(argument, () => this.#entry(entries, depth + 1));
        return entries;
      }
      default: {
        const simple = major === SIMPLE ? SIMPLE_VALUES.find(([code]) => BigInt(code) === argument) : undefined;
        if (simple === undefined) throw new CborError('a value of a kind that is not expected');
        return simple[1];
      }
    }
  }

  /** Keys that are equal however they are encoded are one key. */
  #entry(entries: Map<string | number | bigint, CborValue>, depth: number): void {
    const major = (this.#bytes[this.#at] ?? BREAK) >> 5;
    if (major !== UNSIGNED && major !== NEGATIVE && major !== TEXT)
      throw new CborError('a map key that is neither text nor integer');
    const key = this.item(depth) as string | number | bigint;
    if (entries.has(key)) throw new CborError('a map repeats a key');
    entries.set(key, this.item(depth));
  }

  #repeat(count: bigint | undefined, one: () => void): void {
    if (count === undefined) {
      while (this.#bytes[this.#at] !== BREAK) one();
      this.#at++;
      return;
    }
    if (count > this.left) throw new CborError('cut off'); // each member has a byte at least
    for (let done = 0n; done < count; done++) one();
  }

  #text(length: bigint): string {
    const bytes = this.#take(length);
    if (!isUtf8(bytes)) throw new CborError('text that is not UTF-8');
    return bytes.toString('utf8');
  }

  #take(length: bigint): Buffer {
    if (length > this.left) throw new CborError('cut off');
    const start = this.#at;
    this.#at += Number(length);
    return this.#bytes.subarray(start, this.#at);
  }

  #head(): { readonly major: number; readonly argument: bigint | undefined } {
    const initial = this.#take(1n).readUInt8();
    const major = initial >> 5;
    const low = initial & 0x1f;
    if (low < 24) return { major, argument: BigInt(low) };
    if (low === 31) return { major, argument: undefined };
    if (low > 27) throw new CborError('a reserved head');
    // floats, and simple values in two bytes
    if (major === SIMPLE) throw new CborError('a value of a kind that is not expected');
    return { major, argument: BigInt(`0x${this.#take(BigInt(1 << (low - 24))).toString('hex')}`) };
  }
}

function definite(argument: bigint | undefined): bigint {
  if (argument === undefined) throw new CborError('an indefinite length where none is expected');
  return argument;
}

function whole(value: bigint): number | bigint {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}
