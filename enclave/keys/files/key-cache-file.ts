// The one file of the key cache: its form, and sealing and opening it. Its own key comes from the passwords of every
// keystore in it, by one scrypt: whoever can open the file could have opened each keystore. Each entry is bound to the
// keystore's uuid, checksum and public key. What does not authenticate is not opened.

import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { deriveSealKey, hexOf, NONCE_BYTES, openBytes, SALT_BYTES, sealBytes, TAG_BYTES } from './sealed-bytes.ts';

const FORMAT = 'strongroom-key-cache-1';
export const SECRET_BYTES = 32;

const ENTRY = z.strictObject({ uuid: z.string().max(64), checksum: hexOf(32), public_key: z.string().max(98) });
export const CACHE_FILE = z.strictObject({
  format: z.literal(FORMAT),
  salt: hexOf(SALT_BYTES),
  nonce: hexOf(NONCE_BYTES),
  /** Ascending by their text. */
  keystores: z.array(ENTRY).min(1),
  /** The secret keys in the order of the keystores, 32 bytes each, and the tag; base64. */
  sealed: z.base64(),
});
export type CacheFile = z.infer<typeof CACHE_FILE>;

export interface CacheEntry {
  readonly passwordDigest: Buffer;
  readonly secretKey: Buffer;
}

export function nameInFile({ uuid, checksum, public_key }: CacheFile['keystores'][number]): string {
  return [uuid, checksum, public_key].join(' ');
}

/** Every password counts, in the order of the entries. */
export function passwordOf(names: readonly string[], digests: ReadonlyMap<string, Buffer>): Buffer {
  const hash = createHash('sha256').update(FORMAT);
  for (const name of names) hash.update(digests.get(name) ?? Buffer.alloc(0));
  return hash.digest();
}

/** Everything that is written in clear. */
function associatedData({ format, salt, keystores }: Pick<CacheFile, 'format' | 'salt' | 'keystores'>): Buffer {
  return Buffer.from(JSON.stringify({ format, salt, keystores }));
}

export async function sealCache(entries: ReadonlyMap<string, CacheEntry>): Promise<CacheFile> {
  const names = [...entries.keys()].sort();
  const keystores = names.map((name) => {
    const [uuid = '', checksum = '', public_key = ''] = name.split(' ');
    return { uuid, checksum, public_key };
  });
  const [salt, nonce] = [randomBytes(SALT_BYTES), randomBytes(NONCE_BYTES)];
  const head = { format: FORMAT, salt: salt.toString('hex'), keystores } as const;
  const digests = new Map([...entries].map(([name, { passwordDigest }]) => [name, passwordDigest]));
  const password = passwordOf(names, digests);
  const key = await deriveSealKey(password, salt).finally(() => password.fill(0));
  let secrets: Buffer | undefined;
  try {
    secrets = Buffer.concat(names.map((name) => entries.get(name)?.secretKey ?? Buffer.alloc(0)));
    const sealed = sealBytes(secrets, { key, nonce, associatedData: associatedData(head) });
    return { ...head, nonce: nonce.toString('hex'), sealed: sealed.toString('base64') };
  } finally {
    secrets?.fill(0);
    key.fill(0);
  }
}

/** Undefined for what does not authenticate. */
export async function openCache(file: CacheFile, sealed: Buffer, password: Buffer): Promise<Buffer | undefined> {
  if (sealed.length !== file.keystores.length * SECRET_BYTES + TAG_BYTES) return undefined;
  const key = await deriveSealKey(password, Buffer.from(file.salt, 'hex'));
  try {
    return openBytes(sealed, { key, nonce: Buffer.from(file.nonce, 'hex'), associatedData: associatedData(file) });
  } finally {
    key.fill(0);
  }
}
