// The YAML files that describe keys (wire.md, Key files): several documents a file, unknown properties ignored. Every scalar is
// read as text, because YAML would take an unquoted 0x… private key for a number. What is wrong is said by place and by name,
// never by quoting the file: it may hold a private key. YAML is text, so a raw key passes through the heap as a string that cannot be
// wiped; whoever minds uses keystores.

import { dirname, resolve } from 'node:path';
import { isMap, LineCounter, parseAllDocuments, type YAMLMap } from 'yaml';
import { decodeHex } from '../../../formats/hex.ts';

/** A raw secret is wiped by whoever takes the descriptor. */
export type KeyDescriptor =
  | { readonly type: 'file-raw'; readonly secretKey: Uint8Array }
  | { readonly type: 'file-keystore'; readonly keystoreFile: string; readonly passwordFile: string };

/** One document of a file, counted from 1. */
export type DescribedKey =
  | { readonly document: number; readonly descriptor: KeyDescriptor }
  | { readonly document: number; readonly refused: string };

export const MAX_DESCRIPTOR_BYTES = 2 ** 20;

/** The documents of one descriptor file, in order; empty documents are left out. @param file where its relative paths start */
export function parseDescriptors(file: string, content: Buffer): DescribedKey[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(content.toString('utf8'), {
    schema: 'failsafe',
    // Pretty errors quote the line they are about.
    prettyErrors: false,
    lineCounter: lines,
  });
  const described: DescribedKey[] = [];
  for (const [index, document] of [...documents].entries()) {
    const error = document.errors[0];
    if (error !== undefined) {
      described.push({
        document: index + 1,
        refused: `not YAML: ${error.code} at line ${lines.linePos(error.pos[0]).line}`,
      });
    } else if (isMap(document.contents)) {
      described.push({ document: index + 1, ...describe(dirname(file), document.contents) });
    } else if (document.contents !== null && String(document.contents) !== '') {
      described.push({ document: index + 1, refused: 'not a map of properties' });
    }
  }
  return described.length > 0 ? described : [{ document: 1, refused: 'describes no key' }];
}

type Described = { readonly descriptor: KeyDescriptor } | { readonly refused: string };

function describe(directory: string, map: YAMLMap): Described {
  const type = textOf(map, 'type')?.toLowerCase();
  if (type === undefined) return { refused: 'type is missing' };
  if (type !== 'file-raw' && type !== 'file-keystore') return { refused: `unsupported type${nameOf(type)}` };
  const keyType = textOf(map, 'keyType') ?? 'BLS';
  if (keyType.toUpperCase() !== 'BLS') return { refused: `unsupported keyType${nameOf(keyType)}` };
  return type === 'file-raw' ? describeRaw(map) : describeKeystore(directory, map);
}

function describeRaw(map: YAMLMap): Described {
  const text = textOf(map, 'privateKey');
  if (text === undefined) return { refused: 'privateKey is missing' };
  const secretKey = decodeHex(text, 32);
  return secretKey === undefined
    ? { refused: 'privateKey is not 32 bytes of hex' }
    : { descriptor: { type: 'file-raw', secretKey } };
}

function describeKeystore(directory: string, map: YAMLMap): Described {
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
function textOf(map: YAMLMap, property: string): string | undefined {
  const value = map.get(property);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Names are repeated to the operator only when they look like names. */
function nameOf(text: string): string {
  return /^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(text) ? ` ${text}` : '';
}
