// The YAML files that describe keys (specification/keys.md#key-files). Every scalar is read as text, because YAML would
// take an unquoted 0x… private key for a number. A raw key passes through the heap as a string that cannot be wiped;
// keystores do not.

import { dirname, resolve } from 'node:path';
import { decodeHex } from '../../../common/formats/hex.ts';
import { parseStrictYamlStream } from '../../../common/formats/yaml.ts';

/** A raw secret is wiped by whoever takes the descriptor. */
export type KeyDescriptor =
  | { readonly type: 'file-raw'; readonly secretKey: Uint8Array }
  | { readonly type: 'file-keystore'; readonly keystoreFile: string; readonly passwordFile: string };

export type DescribedKey =
  | { readonly document: number; readonly descriptor: KeyDescriptor }
  | { readonly document: number; readonly refused: string };

export const MAX_DESCRIPTOR_BYTES = 2 ** 20;

/** @param file where its relative paths start */
export function parseDescriptors(file: string, content: Buffer): DescribedKey[] {
  const described: DescribedKey[] = [];
  for (const [index, read] of parseStrictYamlStream(content.toString('utf8'), { scalars: 'text' }).entries()) {
    const document = index + 1;
    if ('problems' in read) {
      const [first] = read.problems;
      described.push({ document, refused: `line ${first?.line}: ${first?.problem}` });
    } else if (isMap(read.value)) {
      described.push({ document, ...describe(dirname(file), read.value) });
    } else if (read.value !== undefined && read.value !== null && read.value !== '') {
      described.push({ document, refused: 'not a map of properties' });
    }
  }
  return described.length > 0 ? described : [{ document: 1, refused: 'describes no key' }];
}

type Properties = Readonly<Record<string, unknown>>;

function isMap(value: unknown): value is Properties {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Described = { readonly descriptor: KeyDescriptor } | { readonly refused: string };

function describe(directory: string, map: Properties): Described {
  const type = textOf(map, 'type')?.toLowerCase();
  if (type === undefined) return { refused: 'type is missing' };
  if (type !== 'file-raw' && type !== 'file-keystore') return { refused: `unsupported type${nameOf(type)}` };
  const keyType = textOf(map, 'keyType') ?? 'BLS';
  if (keyType.toUpperCase() !== 'BLS') return { refused: `unsupported keyType${nameOf(keyType)}` };
  return type === 'file-raw' ? describeRaw(map) : describeKeystore(directory, map);
}

function describeRaw(map: Properties): Described {
  const text = textOf(map, 'privateKey');
  if (text === undefined) return { refused: 'privateKey is missing' };
  const secretKey = decodeHex(text, 32);
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
