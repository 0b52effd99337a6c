// One imported keystore as a file: its password is encrypted under `key_sources.memory.persist_secret`, and bound to
// the public key and to the keystore's text. The folder without the secret is what an export of keystores
// is.

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../../common/formats/parse-json.ts';
import {
  decryptBytes,
  deriveFileKey,
  encryptBytes,
  hexOf,
  NONCE_BYTES,
  SALT_BYTES,
  TAG_BYTES,
} from './encrypted-bytes.ts';

const FORMAT = 'strongroom-imported-keystore-1';
/** A folder of one signer has one; each costs a derivation. */
const MAX_SALTS = 16;

const FILE = z.strictObject({
  format: z.literal(FORMAT),
  public_key: z.string().regex(/^0x[0-9a-f]{96}$/),
  salt: hexOf(SALT_BYTES),
  nonce: hexOf(NONCE_BYTES),
  keystore: z.string(),
  password: z.base64(),
});
type ImportedFile = z.infer<typeof FILE>;

export interface ImportedKeystore {
  readonly publicKey: string;
  readonly keystore: string;
  /** UTF-8; the caller wipes it. */
  readonly password: Buffer;
}

/** Encrypts and decrypts files under one secret, which it keeps. */
export class ImportedKeystoreCipher {
  readonly #secret: Buffer;
  readonly #keys = new Map<string, Promise<Buffer>>();

  constructor(secret: Uint8Array) {
    this.#secret = Buffer.from(secret);
  }

  async encrypt({ publicKey, keystore, password }: ImportedKeystore): Promise<string> {
    // The salt of the files that are there, so that all of them cost one derivation.
    const [salt = randomBytes(SALT_BYTES).toString('hex')] = this.#keys.keys();
    const nonce = randomBytes(NONCE_BYTES).toString('hex');
    const head = { format: FORMAT, public_key: publicKey, salt, nonce, keystore } as const;
    const encrypted = encryptBytes(password, {
      key: await this.#keyFor(salt),
      nonce: Buffer.from(nonce, 'hex'),
      associatedData: associatedData(head),
    });
    return JSON.stringify({ ...head, password: encrypted.toString('base64') });
  }

  async decrypt(text: string): Promise<ImportedKeystore | { readonly refused: string }> {
    const parsed = FILE.safeParse(parseJson(text));
    if (!parsed.success) return { refused: 'not an imported keystore of this version' };
    const file = parsed.data;
    if (!this.#keys.has(file.salt) && this.#keys.size >= MAX_SALTS)
      return { refused: 'more salts than one signer makes' };
    const encrypted = Buffer.from(file.password, 'base64');
    if (encrypted.length < TAG_BYTES) return { refused: 'it is damaged' };
    const password = decryptBytes(encrypted, {
      key: await this.#keyFor(file.salt),
      nonce: Buffer.from(file.nonce, 'hex'),
      associatedData: associatedData(file),
    });
    if (password !== undefined) return { publicKey: file.public_key, keystore: file.keystore, password };
    return { refused: 'it is damaged, or key_sources.memory.persist_secret is another one than it was written under' };
  }

  #keyFor(salt: string): Promise<Buffer> {
    const known = this.#keys.get(salt);
    if (known !== undefined) return known;
    const key = deriveFileKey(this.#secret, Buffer.from(salt, 'hex'));
    this.#keys.set(salt, key);
    key.catch(() => this.#keys.delete(salt)); // the machine may have the memory next time
    return key;
  }

  async wipe(): Promise<void> {
    this.#secret.fill(0);
    const keys = [...this.#keys.values()];
    this.#keys.clear();
    // One that could not be derived keeps none of the others.
    for (const key of await Promise.allSettled(keys)) if (key.status === 'fulfilled') key.value.fill(0);
  }
}

/** Everything that is written in clear. */
function associatedData({ format, public_key, salt, nonce, keystore }: Omit<ImportedFile, 'password'>): Buffer {
  return Buffer.from(JSON.stringify({ format, public_key, salt, nonce, keystore }));
}
