// The file of the key cache (specification/keys.md#key-cache): the passwords that open a slice also open its keystores.
// What does not authenticate is not opened.

import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { oneAfterTheOther } from '../../../common/flow/turns.ts';
import {
  decryptBytes,
  deriveFileKey,
  encryptBytes,
  hexOf,
  NONCE_BYTES,
  SALT_BYTES,
  TAG_BYTES,
} from './encrypted-bytes.ts';

const FORMAT = 'strongroom-key-cache-1';
export const SECRET_BYTES = 32;

const ENTRY = z.strictObject({ uuid: z.string().max(64), checksum: hexOf(32), public_key: z.string().max(98) });
const SLICE = z.strictObject({
  salt: hexOf(SALT_BYTES),
  nonce: hexOf(NONCE_BYTES),
  keystores: z.array(ENTRY).min(1),
  /** The secret keys in the order of the keystores, 32 bytes each, and the tag; base64. */
  sealed: z.base64(),
});
export const CACHE_FILE = z.strictObject({ format: z.literal(FORMAT), slices: z.array(SLICE).min(1) });
export type EncryptedSlice = z.infer<typeof SLICE>;

export interface CacheEntry {
  readonly passwordDigest: Buffer;
  readonly secretKey: Buffer;
}

export function cacheText(slices: readonly EncryptedSlice[]): string {
  return JSON.stringify({ format: FORMAT, slices });
}

export function keystoreNames({ keystores }: EncryptedSlice): readonly string[] {
  return keystores.map(({ uuid, checksum, public_key }) => [uuid, checksum, public_key].join(' '));
}

/** Derived one after the other, because each takes 256 MiB. Holds secrets until wipe(). */
export class SliceKeys {
  readonly #keys = new Map<string, Promise<Buffer>>();
  readonly #inTurn = oneAfterTheOther();

  /** @param digests of the passwords, in any order @throws Error when there is no memory for it */
  derive(digests: readonly Buffer[], salt: string): Promise<Buffer> {
    const password = passwordOf(digests);
    const name = `${salt} ${createHash('sha256').update(password).digest('hex')}`;
    const known = this.#keys.get(name);
    if (known !== undefined) {
      password.fill(0);
      return known;
    }
    const key = this.#inTurn(() => deriveFileKey(password, Buffer.from(salt, 'hex')).finally(() => password.fill(0)));
    this.#keys.set(name, key);
    return key;
  }

  wipe(): void {
    for (const key of this.#keys.values()) {
      key.then(
        (bytes) => bytes.fill(0),
        () => undefined,
      );
    }
    this.#keys.clear();
  }
}

/** Every password counts, and one that several keystores share counts once. */
function passwordOf(digests: readonly Buffer[]): Buffer {
  const hash = createHash('sha256').update(FORMAT);
  const sorted = [...digests].sort(Buffer.compare);
  for (const [index, digest] of sorted.entries()) if (sorted[index - 1]?.equals(digest) !== true) hash.update(digest);
  return hash.digest();
}

function associatedData({ salt, keystores }: Pick<EncryptedSlice, 'salt' | 'keystores'>): Buffer {
  return Buffer.from(JSON.stringify({ format: FORMAT, salt, keystores }));
}

export function newSalt(): string {
  return randomBytes(SALT_BYTES).toString('hex');
}

/** @param entries by keystoreName, at least one */
export async function encryptSlice(
  entries: readonly (readonly [name: string, entry: CacheEntry])[],
  salt: string,
  keys: SliceKeys,
): Promise<EncryptedSlice> {
  const sorted = [...entries].sort(([one], [other]) => (one < other ? -1 : 1));
  const keystores = sorted.map(([name]) => {
    const [uuid = '', checksum = '', public_key = ''] = name.split(' ');
    return { uuid, checksum, public_key };
  });
  const key = await keys.derive(
    sorted.map(([, { passwordDigest }]) => passwordDigest),
    salt,
  );
  const secrets = Buffer.concat(sorted.map(([, { secretKey }]) => secretKey));
  try {
    const nonce = randomBytes(NONCE_BYTES);
    const sealed = encryptBytes(secrets, { key, nonce, associatedData: associatedData({ salt, keystores }) });
    return { salt, nonce: nonce.toString('hex'), keystores, sealed: sealed.toString('base64') };
  } finally {
    secrets.fill(0);
  }
}

/**
 * The secret keys in the order of the names, which the caller wipes; undefined for what does not authenticate.
 * @param digests by keystoreName, of the keystores that are there
 */
export async function decryptSlice(
  slice: EncryptedSlice,
  digests: ReadonlyMap<string, Buffer>,
  keys: SliceKeys,
): Promise<Buffer | undefined> {
  const sealed = Buffer.from(slice.sealed, 'base64');
  if (sealed.length !== slice.keystores.length * SECRET_BYTES + TAG_BYTES) return undefined;
  const known = keystoreNames(slice).flatMap((name) => digests.get(name) ?? []);
  if (known.length === 0) return undefined;
  const key = await keys.derive(known, slice.salt);
  return decryptBytes(sealed, { key, nonce: Buffer.from(slice.nonce, 'hex'), associatedData: associatedData(slice) });
}
