// A new validator key: with backup recipients from a fresh 24-word mnemonic, which leaves only encrypted.

import { pbkdf2, randomFillSync } from 'node:crypto';
import { promisify } from 'node:util';
import { SecretKey } from '@chainsafe/blst';
import { encryptToRecipients } from '../../../ceremony/age.ts';
import { encodeHex } from '../../../common/formats/hex.ts';
import { deriveSecretKey, mnemonicOfEntropy, SIGNING_KEY_PATH } from './derive.ts';

export interface GeneratedKey {
  readonly secretKey: Uint8Array;
  readonly publicKey: string;
  readonly backup: string | undefined;
}

export interface GenerateOptions {
  readonly backupRecipients: readonly string[];
  readonly fillRandom?: ((buffer: Buffer) => void | Promise<void>) | undefined;
}

/** 256 bits give 24 words (BIP-39), and are the shortest seed of EIP-2333. */
const ENTROPY_BYTES = 32;
const MASTER_PATH = 'm';

export async function generateKey({ backupRecipients, fillRandom }: GenerateOptions): Promise<GeneratedKey> {
  const entropy = Buffer.alloc(ENTROPY_BYTES);
  try {
    await (fillRandom ?? randomFillSync)(entropy);
    return backupRecipients.length === 0
      ? keyOf(deriveSecretKey(entropy, MASTER_PATH), undefined)
      : await generateFromMnemonic(entropy, backupRecipients);
  } finally {
    entropy.fill(0);
  }
}

/** The words pass through the heap as a string, which cannot be wiped: age encrypts bytes, but BIP-39 makes words. */
async function generateFromMnemonic(entropy: Buffer, recipients: readonly string[]): Promise<GeneratedKey> {
  const mnemonic = mnemonicOfEntropy(entropy);
  const backup = await encryptMnemonic(mnemonic, recipients);
  const seed = await seedOf(mnemonic);
  try {
    return keyOf(deriveSecretKey(seed, SIGNING_KEY_PATH), backup);
  } finally {
    seed.fill(0);
  }
}

function keyOf(secretKey: Uint8Array, backup: string | undefined): GeneratedKey {
  const publicKey = encodeHex(SecretKey.fromBytes(secretKey).toPublicKey().toBytes());
  return { secretKey, publicKey, backup };
}

/** BIP-39, From mnemonic to seed. Off the thread that signs: it takes a while. */
async function seedOf(mnemonic: string): Promise<Buffer> {
  const words = Buffer.from(mnemonic, 'ascii');
  try {
    return await promisify(pbkdf2)(words, 'mnemonic', 2048, 64, 'sha512');
  } finally {
    words.fill(0);
  }
}

// The backup is age-encrypted and armored, so that `age -d` gives the words back; the signer itself can never open it.

async function encryptMnemonic(mnemonic: string, recipients: readonly string[]): Promise<string> {
  const plaintext = Buffer.from(mnemonic, 'utf8');
  try {
    return await encryptToRecipients(plaintext, recipients);
  } finally {
    plaintext.fill(0);
  }
}
