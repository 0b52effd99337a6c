// Validator keys that hold nothing: the same in every run, and public by construction.

import { SecretKey } from '@chainsafe/blst';

export interface TestKey {
  readonly secret: string;
  readonly publicKey: string;
}

export function testKey(index: number): TestKey {
  const seed = Buffer.alloc(32, 0x5e);
  seed.writeUInt32BE(index);
  const key = SecretKey.fromKeygen(seed);
  return { secret: key.toHex(), publicKey: key.toPublicKey().toHex() };
}
