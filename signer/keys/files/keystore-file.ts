// One keystore on disk with the file of its password. What is wrong is said by file and by name, never by quoting
// either file.

import { copyOffHeap, type Keystore } from '../keystores/cipher.ts';
import { keystoreJson, parseKeystoreJson } from '../keystores/keystore.ts';
import { type ForeignKind, foreignKind } from './foreign-file.ts';
import { contentsOf, readSmallFile } from './small-files.ts';

const MAX_KEYSTORE_BYTES = 64 * 1024;
const MAX_PASSWORD_FILE_BYTES = 4 * 1024;

export interface KeystorePlace {
  readonly keystoreFile: string;
  readonly passwordFile: string;
}

export interface ReadKeystore {
  readonly keystore: Keystore;
  readonly password: Uint8Array;
  /** Equal for equal contents of both files, in this process. */
  readonly contents: string;
}

/** `publicKey`: what a keystore without a usable password says it is of. */
export type KeystoreFile =
  | ReadKeystore
  | {
      readonly refused: string;
      readonly publicKey?: string;
      readonly withoutPassword?: true;
      /** It is no keystore, and no fault where nothing names it as one. */
      readonly foreign?: ForeignKind;
    };

export async function readKeystoreFile({ keystoreFile, passwordFile }: KeystorePlace): Promise<KeystoreFile> {
  const file = await readKeystoreAlone(keystoreFile);
  if ('refused' in file) return file;
  const { keystore } = file;
  const password = await readPassword(passwordFile);
  if ('refused' in password) {
    const stated = keystore.publicKey === undefined ? {} : { publicKey: keystore.publicKey };
    return { ...stated, refused: `keystorePasswordFile ${passwordFile}: ${password.refused}`, withoutPassword: true };
  }
  return { keystore, password: password.content, contents: contentsOf(file.content, password.content) };
}

/** Without its password. */
export async function readKeystoreAlone(
  keystoreFile: string,
): Promise<
  | { readonly keystore: Keystore; readonly content: Buffer }
  | { readonly refused: string; readonly foreign?: ForeignKind }
> {
  const file = await readSmallFile(keystoreFile, MAX_KEYSTORE_BYTES);
  if ('refused' in file) return { refused: `keystoreFile ${keystoreFile}: ${file.refused}` };
  const { content } = file;
  const text = content.toString('utf8');
  const keystore = parseKeystoreJson(text);
  if (!('refused' in keystore)) return { keystore, content };
  const foreign = foreignKind(keystoreFile, keystoreJson(text));
  const refused = `keystoreFile ${keystoreFile}: ${keystore.reason}`;
  return foreign === undefined ? { refused } : { refused, foreign };
}

/** Its first line. */
export async function readPassword(
  path: string,
): Promise<{ readonly content: Uint8Array } | { readonly refused: string }> {
  const file = await readSmallFile(path, MAX_PASSWORD_FILE_BYTES);
  if ('refused' in file) return file;
  const lineEnd = file.content.indexOf('\n');
  const line = lineEnd === -1 ? file.content : file.content.subarray(0, lineEnd);
  const content = copyOffHeap(line.at(-1) === 0x0d ? line.subarray(0, -1) : line);
  file.content.fill(0);
  return content.length > 0 ? { content } : { refused: 'its first line is empty' };
}
