// Sub-keys of the master key: HKDF-SHA256 without a salt, one `info` a purpose (specification/custody.md#master-key).

import { createHmac } from 'node:crypto';

const NO_SALT = Buffer.alloc(32);
const FIRST_BLOCK = Buffer.of(1);

/**
 * The caller's to wipe. Not crypto.hkdfSync: that leaves a copy of its input in a key object until the garbage
 * collector comes, and sealing has to forget at once.
 */
export function deriveSubKey(masterKey: Uint8Array, info: string): Buffer {
  const pseudorandomKey = createHmac('sha256', NO_SALT).update(masterKey).digest();
  const subKey = createHmac('sha256', pseudorandomKey).update(info, 'ascii').update(FIRST_BLOCK).digest();
  pseudorandomKey.fill(0);
  return subKey;
}
