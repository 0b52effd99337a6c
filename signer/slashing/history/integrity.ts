// The integrity code of a stored row: it shows that a row was altered, moved to another key, or copied from another
// network. With a key (from the master key) it is a MAC, without one a checksum. It does not detect missing rows.

import { strict as assert } from 'node:assert';
import { createHmac, hash, timingSafeEqual } from 'node:crypto';

export const INTEGRITY_CODE_BYTES = 16;

export const NO_PUBLIC_KEY: Uint8Array = new Uint8Array(48);

/** What this program writes are safe integers; an altered row may hold any number. */
export type IntegrityField = number | null | Uint8Array;

export type RowIntegrity = ReturnType<typeof rowIntegrity>;

export interface RowIntegrityOptions {
  /** 32 bytes, copied; without it codes are checksums. */
  readonly key?: Uint8Array | undefined;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
}

export function rowIntegrity(options: RowIntegrityOptions) {
  assert.equal(options.genesisValidatorsRoot.length, 32);
  const key = options.key === undefined ? undefined : Buffer.from(options.key);
  assert(key === undefined || key.length === 32);
  const network = Buffer.from(options.genesisValidatorsRoot);
  const masking = key === undefined ? undefined : maskInput(key);
  let wiped = false;

  function hashOf(domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): Uint8Array {
    assert(!wiped, 'row integrity is used after it was wiped');
    const message = encode(domain, network, publicKey, fields);
    // As text and back: asked for bytes, Node makes memory of its own for each digest, at the price of the hash.
    return key === undefined
      ? Buffer.from(hash('sha256', message, 'latin1'), 'latin1')
      : Buffer.from(createHmac('sha256', key).update(message).digest('latin1'), 'latin1');
  }

  function code(domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): Uint8Array {
    return hashOf(domain, publicKey, fields).subarray(0, INTEGRITY_CODE_BYTES);
  }

  return {
    kind: key === undefined ? ('checksum' as const) : ('hmac' as const),
    /** 32 bytes over the kind of row (`domain`), the network, the key the row belongs to (48 bytes), and the fields. */
    hash: hashOf,
    code,
    verify(stored: Uint8Array, domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): boolean {
      return stored.length === INTEGRITY_CODE_BYTES && timingSafeEqual(stored, code(domain, publicKey, fields));
    },
    /** 32 bytes that cover something of this key which is stored under a nonce of 16 bytes. Only with a key. */
    mask(publicKey: Uint8Array, nonce: Uint8Array): Uint8Array {
      assert(!wiped, 'row integrity is used after it was wiped');
      assert(masking !== undefined, 'a mask needs a key');
      assert(publicKey.length === PUBLIC_KEY_BYTES && nonce.length === MASK_NONCE_BYTES);
      masking.set(publicKey, MASK_INFO_AT);
      masking.set(nonce, MASK_INFO_AT + PUBLIC_KEY_BYTES);
      return Buffer.from(hash('sha256', masking, 'latin1'), 'latin1');
    },
    wipe(): void {
      wiped = true;
      key?.fill(0);
      masking?.fill(0);
    },
  };
}

// The one-step key derivation of NIST SP 800-56C revision 2, section 4.1, option 1: the hash of a counter, the secret,
// and fixed information, of lengths that never vary. The secret serves nothing else. An HMAC would cost several times
// as much, and each check takes two masks.
const MASK_SECRET_AT = 4;
const MASK_INFO_AT = MASK_SECRET_AT + 32;
const PUBLIC_KEY_BYTES = 48;
const MASK_NONCE_BYTES = 16;

function maskInput(key: Uint8Array): Buffer {
  const input = Buffer.alloc(MASK_INFO_AT + PUBLIC_KEY_BYTES + MASK_NONCE_BYTES);
  input.writeUInt32BE(1, 0);
  const secret = createHmac('sha256', key).update('strongroom digest mask v2').digest();
  input.set(secret, MASK_SECRET_AT);
  secret.fill(0);
  return input;
}

// Every part says its own length, so no two lists of parts have the same bytes.
const NULL_TAG = 0;
const NUMBER_TAG = 1;
const BYTES_TAG = 2;
const NUMBER_BYTES = 8;

/** Longer than any row of ours; each message is hashed before the next. */
const SCRATCH = Buffer.alloc(512);

function encode(domain: string, network: Uint8Array, publicKey: Uint8Array, fields: readonly IntegrityField[]): Buffer {
  assert.equal(publicKey.length, 48);
  assert(domain.length < 256);
  let length = 1 + domain.length + network.length + publicKey.length;
  for (const field of fields) length += 1 + fieldBytes(field);
  const message = length <= SCRATCH.length ? SCRATCH.subarray(0, length) : Buffer.alloc(length);
  const numbers = new DataView(message.buffer, message.byteOffset, length);

  message[0] = domain.length;
  let at = 1 + message.write(domain, 1, 'latin1');
  message.set(network, at);
  at += network.length;
  message.set(publicKey, at);
  at += publicKey.length;
  for (const field of fields) at = writeField(message, numbers, field, at);
  assert.equal(at, length);
  return message;
}

function fieldBytes(field: IntegrityField): number {
  if (field === null) return 0;
  return typeof field === 'number' ? NUMBER_BYTES : 4 + field.length;
}

function writeField(message: Uint8Array, numbers: DataView, field: IntegrityField, at: number): number {
  if (field === null) {
    message[at] = NULL_TAG;
    return at + 1;
  }
  if (typeof field === 'number') {
    message[at] = NUMBER_TAG;
    numbers.setFloat64(at + 1, field);
    return at + 1 + NUMBER_BYTES;
  }
  message[at] = BYTES_TAG;
  numbers.setUint32(at + 1, field.length);
  message.set(field, at + 5);
  return at + 5 + field.length;
}
