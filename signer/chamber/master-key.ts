// The master key: 32 bytes from which every other key of the signer is derived. This file holds the only lasting copy.

import { strict as assert } from 'node:assert';
import { randomFillSync } from 'node:crypto';
import { deriveSubKey } from '../../ceremony/record.ts';
import { MASTER_KEY_BYTES } from '../../ceremony/shares.ts';
import { SignerError } from '../api/errors.ts';
import { loadAddon, type MemoryPolicy } from '../native/load.ts';

/** HKDF `info` of each purpose (specification/custody.md#master-key). */
export const PURPOSES = {
  keyEncryption: 'strongroom/key-encryption/v1',
  authRowHmac: 'strongroom/auth-row-hmac/v1',
  tokenHmac: 'strongroom/token-hmac/v1',
  slashingRowHmac: 'strongroom/slashing-row-hmac/v1',
  storeBindingHmac: 'strongroom/store-binding-hmac/v1',
  shareBinding: 'strongroom/share-binding/v1',
} as const;

export type Purpose = keyof typeof PURPOSES;

export class MasterKey {
  readonly #bytes: Buffer;
  #wiped = false;

  constructor(bytes: Uint8Array, memory: MemoryPolicy) {
    assert.equal(bytes.length, MASTER_KEY_BYTES);
    this.#bytes = secretBuffer(memory);
    this.#bytes.set(bytes);
    bytes.fill(0);
  }

  /** A new one from the system's CSPRNG, mixed with what `mix` gives (in an enclave, NSM randomness). */
  static generate(memory: MemoryPolicy, mix?: Uint8Array): MasterKey {
    const bytes = randomFillSync(ownBuffer());
    if (mix !== undefined) {
      assert.equal(mix.length, MASTER_KEY_BYTES);
      for (const [at, byte] of mix.entries()) bytes[at] = (bytes[at] ?? 0) ^ byte;
    }
    return new MasterKey(bytes, memory);
  }

  /** 32 bytes of their own; the caller wipes them. @throws SignerError `master_key_unavailable` after `wipe` */
  subKey(purpose: Purpose): Buffer {
    this.#assertHeld();
    return deriveSubKey(this.#bytes, PURPOSES[purpose]);
  }

  /** Lend the bytes, to be split into shares. They must not be kept. */
  use<T>(borrow: (bytes: Buffer) => T): T {
    this.#assertHeld();
    return borrow(this.#bytes);
  }

  wipe(): void {
    this.#wiped = true;
    this.#bytes.fill(0);
  }

  #assertHeld(): void {
    if (this.#wiped) throw new SignerError('master_key_unavailable');
  }
}

function secretBuffer(memory: MemoryPolicy): Buffer {
  const addon = loadAddon();
  return addon === undefined ? ownBuffer() : Buffer.from(addon.allocateSecret(MASTER_KEY_BYTES, memory));
}

/** Off the JavaScript heap, where the garbage collector moves small arrays and leaves copies of them. */
function ownBuffer(): Buffer {
  return Buffer.from(new ArrayBuffer(MASTER_KEY_BYTES));
}
