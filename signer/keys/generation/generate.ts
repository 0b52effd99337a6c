// A new validator key: with backup recipients from a fresh 24-word mnemonic, which leaves only encrypted. From the
// mnemonic to the key: BIP-39 seed, then EIP-2333 derivation along an EIP-2334 path.

import { pbkdf2, randomFillSync } from 'node:crypto';
import { promisify } from 'node:util';
import { SecretKey } from '@chainsafe/blst';
import { entropyToMnemonic } from '@scure/bip39';
import { wordlist as englishWords } from '@scure/bip39/wordlists/english.js';
import { encodeHex } from '../../../common/formats/hex.ts';

export interface GeneratedKey {
  readonly secretKey: Uint8Array;
  readonly publicKey: string;
  readonly backup: string | undefined;
}

export interface GenerateOptions {
  /** Encrypts the words for those who keep them; undefined: keys get no backup. */
  readonly encryptBackup: ((words: Uint8Array) => Promise<string>) | undefined;
  readonly fillRandom?: ((buffer: Buffer) => void | Promise<void>) | undefined;
}

/** 256 bits give 24 words (BIP-39), and are the shortest seed of EIP-2333. */
const ENTROPY_BYTES = 32;
const MASTER_PATH = 'm';
/** EIP-2334: purpose 12381, coin type 3600 (Ethereum), account 0, withdrawal key 0, its signing key 0. */
export const SIGNING_KEY_PATH = 'm/12381/3600/0/0/0';

export async function generateKey({ encryptBackup, fillRandom }: GenerateOptions): Promise<GeneratedKey> {
  const entropy = Buffer.alloc(ENTROPY_BYTES);
  try {
    await (fillRandom ?? randomFillSync)(entropy);
    return encryptBackup === undefined
      ? keyOf(deriveSecretKey(entropy, MASTER_PATH), undefined)
      : await generateFromMnemonic(entropy, encryptBackup);
  } finally {
    entropy.fill(0);
  }
}

/** The words pass through the heap as a string, which cannot be wiped: a backup is of bytes, but BIP-39 makes words. */
async function generateFromMnemonic(
  entropy: Buffer,
  encrypt: (words: Uint8Array) => Promise<string>,
): Promise<GeneratedKey> {
  const words = Buffer.from(mnemonicOfEntropy(entropy), 'ascii');
  let seed: Buffer | undefined;
  try {
    const backup = await encrypt(words);
    // BIP-39, From mnemonic to seed. Off the thread that signs: it takes a while.
    seed = await promisify(pbkdf2)(words, 'mnemonic', 2048, 64, 'sha512');
    return keyOf(deriveSecretKey(seed, SIGNING_KEY_PATH), backup);
  } finally {
    words.fill(0);
    seed?.fill(0);
  }
}

function keyOf(secretKey: Uint8Array, backup: string | undefined): GeneratedKey {
  const publicKey = encodeHex(SecretKey.fromBytes(secretKey).toPublicKey().toBytes());
  return { secretKey, publicKey, backup };
}

/** @param entropy 16 to 32 bytes: 32 bytes give 24 words */
export function mnemonicOfEntropy(entropy: Uint8Array): string {
  return entropyToMnemonic(entropy, englishWords);
}

/** 32 bytes, big endian; the caller wipes both. @throws RangeError for a seed of less than 32 bytes, or a bad path */
export function deriveSecretKey(seed: Uint8Array, path: string): Uint8Array {
  if (seed.length < 32) throw new RangeError('an EIP-2333 seed has at least 32 bytes');
  // blst wipes each SecretKey when it is collected.
  let key = SecretKey.deriveMasterEip2333(seed);
  for (const index of indicesOf(path)) key = key.deriveChildEip2333(index);
  return key.toBytes();
}

function indicesOf(path: string): number[] {
  const [root, ...nodes] = path.split('/');
  if (root !== 'm') throw new RangeError('an EIP-2334 path begins with m');
  return nodes.map((node) => {
    const index = Number(node);
    if (!/^\d{1,10}$/.test(node) || index >= 2 ** 32) throw new RangeError('an EIP-2334 path has indices below 2^32');
    return index;
  });
}
