// CBOR (RFC 8949) as NSM messages, attestation documents and CMW records use it: the one file through which the codec enters.
// It trusts nothing: before the codec sees the bytes, a scan refuses what is not well formed, is nested deeply, repeats a key, has bytes
// left over, or is of a kind that no message of ours has (floats, tags but the one asked for, indefinite strings, bignums).

import { strict as assert } from 'node:assert';
import { isUtf8 } from 'node:buffer';
import { Decoder, Encoder, Tag } from 'cbor-x';

/** Maps are Maps: their keys are text or integers. Integers beyond 2^53 are bigints. */
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

const codec = { mapsAsObjects: false, useRecords: false, variableMapSize: true, tagUint8Array: false } as const;
const encoder = new Encoder(codec);
const decoder = new Decoder(codec);

/** Definite lengths, shortest heads; a Map keeps its order, a Buffer is a byte string. */
export function encodeCbor(value: CborValue): Buffer {
  return Buffer.from(encoder.encode(asIntegers(value)));
}

/**
 * One item and nothing after it. Definite and indefinite maps and arrays are both read (RFC 8949 §3.2.2).
 * @param options.tag a tag that may stand before the item, and is dropped
 * @throws CborError
 */
export function decodeCbor(bytes: Uint8Array, { tag }: { readonly tag?: number } = {}): CborValue {
  const scan = new Scan(bytes, tag);
  scan.item(0);
  if (scan.at !== bytes.length) throw new CborError(`${bytes.length - scan.at} bytes after the item`);
  const decoded = normalise(decoder.decode(bytes));
  // A codec keeps the last of two equal keys, however they are encoded: then entries are missing.
  if (countEntries(decoded) !== scan.entries) throw new CborError('a map repeats a key');
  return decoded;
}

/** RFC 8949 §3: walks the heads and counts map entries. */
class Scan {
  readonly #bytes: Buffer;
  readonly #tag: number | undefined;
  at = 0;
  entries = 0;

  constructor(bytes: Uint8Array, tag: number | undefined) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#tag = tag;
  }

  item(depth: number): void {
    if (depth > MAX_DEPTH) throw new CborError(`nested deeper than ${MAX_DEPTH}`);
    const { major, argument } = this.#head();
    if (major === 0 || major === 1) this.#definite(argument);
    else if (major === 2) this.#take(argument);
    else if (major === 3) this.#text(argument);
    else if (major === 4) this.#repeat(argument, () => this.item(depth + 1));
    else if (major === 5) this.#repeat(argument, () => this.#entry(depth + 1));
    else if (major === 6 && depth === 0 && this.at <= 9 && argument !== undefined && Number(argument) === this.#tag)
      this.item(depth + 1);
    else if (major !== 7 || !isSimple(argument)) throw new CborError('a value of a kind that is not expected');
  }

  #entry(depth: number): void {
    const major = (this.#bytes[this.at] ?? 0xff) >> 5;
    if (major !== 0 && major !== 1 && major !== 3) throw new CborError('a map key that is neither text nor integer');
    this.item(depth);
    this.item(depth);
    this.entries++;
  }

  #repeat(count: bigint | undefined, one: () => void): void {
    if (count !== undefined) {
      if (count > BigInt(this.#bytes.length - this.at)) throw new CborError('cut off');
      for (let done = 0n; done < count; done++) one();
      return;
    }
    while (this.#bytes[this.at] !== 0xff) one();
    this.at++;
  }

  #text(length: bigint | undefined): void {
    if (!isUtf8(this.#take(length))) throw new CborError('text that is not UTF-8');
  }

  #take(length: bigint | undefined): Buffer {
    const wanted = this.#definite(length);
    if (wanted > BigInt(this.#bytes.length - this.at)) throw new CborError('cut off');
    const end = this.at + Number(wanted);
    const taken = this.#bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }

  #definite(argument: bigint | undefined): bigint {
    if (argument === undefined) throw new CborError('an indefinite length where none is expected');
    return argument;
  }

  /** The argument is undefined for an indefinite length. */
  #head(): { readonly major: number; readonly argument: bigint | undefined } {
    const [initial] = this.#take(1n);
    assert(initial !== undefined);
    const major = initial >> 5;
    const low = initial & 0x1f;
    if (low < 24) return { major, argument: BigInt(low) };
    if (low === 31) return { major, argument: undefined };
    if (low > 27) throw new CborError('a reserved head');
    if (major === 7) throw new CborError('a value of a kind that is not expected'); // floats, and simple values in two bytes
    return { major, argument: BigInt(`0x${this.#take(BigInt(1 << (low - 24))).toString('hex')}`) };
  }
}

/** false, true, null (20 to 22). `undefined` (23) is not a value of any message of ours. */
function isSimple(argument: bigint | undefined): boolean {
  return argument !== undefined && argument >= 20n && argument <= 22n;
}

/** The codec writes whole numbers beyond 32 bits as floats, and bigints as integers. */
function asIntegers(value: CborValue): unknown {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new CborError('a number that is not a whole one');
    return Math.abs(value) < 2 ** 31 ? value : BigInt(value);
  }
  if (Array.isArray(value)) return value.map(asIntegers);
  if (value instanceof Map) return new Map([...value].map(([key, member]) => [key, asIntegers(member)]));
  return value;
}

function normalise(value: unknown): CborValue {
  if (value instanceof Tag) return normalise(value.value);
  if (typeof value === 'bigint' && BigInt(Number(value)) === value && Number.isSafeInteger(Number(value)))
    return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value); // a copy: the document may be larger than what is kept of it
  if (Array.isArray(value)) return value.map(normalise);
  if (value instanceof Map) {
    return new Map([...value].map(([key, member]) => [key as string | number | bigint, normalise(member)]));
  }
  return value as CborValue; // the scan let only scalars through
}

function countEntries(value: CborValue): number {
  if (value instanceof Map) {
    let count = value.size;
    for (const member of value.values()) count += countEntries(member);
    return count;
  }
  if (Array.isArray(value)) return value.reduce((count: number, member: CborValue) => count + countEntries(member), 0);
  return 0;
}
