// The YAML files that describe keys (specification/keys.md#key-files). Every scalar is read as text, because YAML would
// take an unquoted 0x… private key for a number. Private keys are taken out of the bytes before, so that they are no
// part of a string, which could not be wiped.

import { randomBytes } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { decodeHex } from '../../../common/formats/hex.ts';
import { isRecord } from '../../../common/formats/is-record.ts';
import { parseStrictYamlStream } from '../../../common/formats/yaml.ts';
import type { ForeignKind } from './foreign-file.ts';

/** The code that takes a descriptor wipes its raw secret. */
export type KeyDescriptor =
  | { readonly type: 'file-raw'; readonly secretKey: Uint8Array }
  | { readonly type: 'file-keystore'; readonly keystoreFile: string; readonly passwordFile: string };

export type DescribedKey =
  | { readonly document: number; readonly descriptor: KeyDescriptor }
  | { readonly document: number; readonly refused: string }
  | { readonly document: number; readonly refused: string; readonly foreign: ForeignKind };

export const MAX_DESCRIPTOR_BYTES = 2 ** 20;
const KEY_BYTES = 32;

/**
 * @param file where its relative paths start
 * @param content its private keys are overwritten
 */
export function parseDescriptors(file: string, content: Buffer): DescribedKey[] {
  const keys = new TakenKeys(content);
  try {
    return parseTaken(file, content, keys);
  } finally {
    keys.wipeUnused();
  }
}

function parseTaken(file: string, content: Buffer, keys: TakenKeys): DescribedKey[] {
  const described: DescribedKey[] = [];
  const text = content.toString('utf8');
  const documents = readPlainDocuments(text) ?? parseStrictYamlStream(text, 'text');
  for (const [index, read] of documents.entries()) {
    const document = index + 1;
    if ('problems' in read) {
      const [first] = read.problems;
      described.push({ document, refused: `line ${first?.line}: ${first?.problem}` });
    } else if (isRecord(read.value)) {
      described.push({ document, ...describe(dirname(file), read.value, keys) });
    } else if (read.value !== undefined && read.value !== null && read.value !== '') {
      described.push({ document, refused: 'not a map of properties' });
    }
  }
  return described.length > 0 ? described : [{ document: 1, refused: 'describes no key' }];
}

// Nearly all files hold plain lines alone, `name: value` with quotes or without. The YAML package takes 120 µs for a
// document of them, half of what it costs to load a raw key; this takes 4 to 12. Every other line, and whatever YAML
// forbids, is the package's.

const PLAIN_LINE = /^([A-Za-z]{1,64}): (?:"([ !#-[\]-~]*)"|'([ -&(-~]*)'|([A-Za-z0-9/.][\w/.-]*))$/;

/** @returns undefined when it cannot read all of them */
export function readPlainDocuments(text: string): { readonly value: Properties }[] | undefined {
  const documents: { value: Properties }[] = [];
  for (const lines of text
    .replace(/^---\n/, '')
    .replace(/\n$/, '')
    .split('\n---\n')) {
    const value: Record<string, string> = {};
    for (const line of lines.split('\n')) {
      const [, name, inDouble, inSingle, unquoted] = PLAIN_LINE.exec(line) ?? [];
      const read = inDouble ?? inSingle ?? unquoted;
      if (name === undefined || read === undefined || Object.hasOwn(value, name)) return undefined;
      value[name] = read;
    }
    documents.push({ value });
  }
  return documents;
}

type Properties = Readonly<Record<string, unknown>>;

type Described =
  | { readonly descriptor: KeyDescriptor }
  | { readonly refused: string }
  | { readonly refused: string; readonly foreign: ForeignKind };

function describe(directory: string, map: Properties, keys: TakenKeys): Described {
  const type = textOf(map, 'type')?.toLowerCase();
  if (type === undefined) return { refused: 'type is missing' };
  if (type !== 'file-raw' && type !== 'file-keystore') return { refused: `unsupported type${nameOf(type)}` };
  const keyType = textOf(map, 'keyType') ?? 'BLS';
  if (keyType.toUpperCase() !== 'BLS') {
    const refused = `unsupported keyType${nameOf(keyType)}`;
    return keyType.toUpperCase() === 'SECP256K1' ? { refused, foreign: 'secp256k1_keys' } : { refused };
  }
  return type === 'file-raw' ? describeRaw(map, keys) : describeKeystore(directory, map);
}

function describeRaw(map: Properties, keys: TakenKeys): Described {
  const text = textOf(map, 'privateKey');
  if (text === undefined) return { refused: 'privateKey is missing' };
  const secretKey = keys.use(text) ?? decodeHex(text, KEY_BYTES);
  return secretKey === undefined
    ? { refused: 'privateKey is not 32 bytes of hex' }
    : { descriptor: { type: 'file-raw', secretKey } };
}

function describeKeystore(directory: string, map: Properties): Described {
  const keystoreFile = textOf(map, 'keystoreFile');
  const passwordFile = textOf(map, 'keystorePasswordFile');
  if (keystoreFile === undefined) return { refused: 'keystoreFile is missing' };
  if (passwordFile === undefined) return { refused: 'keystorePasswordFile is missing' };
  return {
    descriptor: {
      type: 'file-keystore',
      keystoreFile: resolve(directory, keystoreFile),
      passwordFile: resolve(directory, passwordFile),
    },
  };
}

/** Undefined also for a property that is empty or not a plain text. */
function textOf(map: Properties, property: string): string | undefined {
  const value = Object.hasOwn(map, property) ? map[property] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Names are repeated to the operator only when they look like names. */
function nameOf(text: string): string {
  return /^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(text) ? ` ${text}` : '';
}

const KEY_PROPERTY = 'privateKey';
const BETWEEN = Buffer.from(`:"' \t\r\n`);
const MARK_DIGITS = 56;

/**
 * The private keys of a file, in one memory of their own. The constructor puts random digits in the place of each.
 * A key that is spelled in another way, as with escapes, is none of these: it is read as text.
 */
class TakenKeys {
  readonly #mark = randomBytes(MARK_DIGITS / 2).toString('hex');
  readonly #keys = new Map<number, Uint8Array>();

  constructor(content: Buffer) {
    const most = Math.floor(content.length / (KEY_PROPERTY.length + 2 * KEY_BYTES));
    const secrets = new Uint8Array(new ArrayBuffer(most * KEY_BYTES));
    for (let at = content.indexOf(KEY_PROPERTY); at !== -1; at = content.indexOf(KEY_PROPERTY, at + 1)) {
      const begin = beginOfDigits(content, at + KEY_PROPERTY.length);
      const number = this.#keys.size;
      const key = secrets.subarray(number * KEY_BYTES, (number + 1) * KEY_BYTES);
      if (!readDigits(content, begin, key)) continue;
      this.#keys.set(number, key);
      content.write(this.#mark + number.toString(16).padStart(2 * KEY_BYTES - MARK_DIGITS, '0'), begin, 'latin1');
    }
  }

  /** @returns the key that the text stands for, once */
  use(text: string): Uint8Array | undefined {
    const digits = /^0x/i.test(text) ? text.slice(2) : text;
    if (digits.length !== 2 * KEY_BYTES || !digits.startsWith(this.#mark)) return undefined;
    const number = Number.parseInt(digits.slice(MARK_DIGITS), 16);
    const key = this.#keys.get(number);
    this.#keys.delete(number);
    return key;
  }

  wipeUnused(): void {
    for (const key of this.#keys.values()) key.fill(0);
  }
}

function beginOfDigits(content: Buffer, behind: number): number {
  let at = behind;
  while (BETWEEN.includes(content[at] ?? 0)) at++;
  return content[at] === 0x30 && ((content[at + 1] ?? 0) | 0x20) === 0x78 ? at + 2 : at;
}

/** False when there are not 64 hex digits, or more. */
function readDigits(content: Buffer, begin: number, key: Uint8Array): boolean {
  if (hexValue(content[begin + 2 * KEY_BYTES]) !== undefined) return false;
  for (let index = 0; index < KEY_BYTES; index++) {
    const [high, low] = [hexValue(content[begin + 2 * index]), hexValue(content[begin + 2 * index + 1])];
    if (high === undefined || low === undefined) {
      key.fill(0);
      return false;
    }
    key[index] = high * 16 + low;
  }
  return true;
}

function hexValue(byte = 0): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = (byte | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : undefined;
}
