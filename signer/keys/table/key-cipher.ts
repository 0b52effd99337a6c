// How a secret key lies in the key table (specification/tables.md#key-table), bound to its row by the associated data.

import { strict as assert } from 'node:assert';
import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto';
import { SignerError } from '../../api/errors.ts';
import { SECRET_KEY_BYTES } from '../vault.ts';
import type { TableRow } from './rows.ts';

const FORMAT_VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ENCRYPTED_BYTES = 1 + NONCE_BYTES + SECRET_KEY_BYTES + TAG_BYTES;
const PUBLIC_KEY_BYTES = 48;
const GENERATION_BYTES = 8;
const TIME_BYTES = 24;
const DIGEST_BYTES = 32;
const ASSOCIATED_BYTES = 1 + PUBLIC_KEY_BYTES + 1 + GENERATION_BYTES + 2 * TIME_BYTES + DIGEST_BYTES;
const STATUS_BYTE = { inactive: 0, active: 1 } as const;

type RowWithoutSecret = Omit<TableRow, 'encryptedSecret'>;

/** Owns the encryption key; after `wipe` everything throws SignerError `sealed`. */
export class KeyCipher {
  readonly #key: Buffer;
  #wiped = false;

  constructor(key: Buffer) {
    assert.equal(key.length, 32);
    this.#key = key;
  }

  encrypt(row: RowWithoutSecret, secretKey: Uint8Array): TableRow {
    this.#assertHeld();
    assert.equal(secretKey.length, SECRET_KEY_BYTES);
    const nonce = randomFillSync(Buffer.alloc(NONCE_BYTES));
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(row));
    const ciphertext = Buffer.concat([cipher.update(secretKey), cipher.final()]);
    const encryptedSecret = Buffer.concat([Buffer.of(FORMAT_VERSION), nonce, ciphertext, cipher.getAuthTag()]);
    return { ...row, encryptedSecret };
  }

  /** The secret key, which the caller wipes; undefined when the row is not as it was encrypted. */
  decrypt(row: TableRow): Buffer | undefined {
    this.#assertHeld();
    const { encryptedSecret } = row;
    if (encryptedSecret.length !== ENCRYPTED_BYTES || encryptedSecret[0] !== FORMAT_VERSION) return undefined;
    const nonce = encryptedSecret.subarray(1, 1 + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(associatedData(row));
    decipher.setAuthTag(encryptedSecret.subarray(ENCRYPTED_BYTES - TAG_BYTES));
    const secretKey = decipher.update(encryptedSecret.subarray(1 + NONCE_BYTES, ENCRYPTED_BYTES - TAG_BYTES));
    try {
      decipher.final();
      return secretKey;
    } catch {
      secretKey.fill(0);
      return undefined;
    }
  }

  wipe(): void {
    this.#wiped = true;
    this.#key.fill(0);
  }

  #assertHeld(): void {
    if (this.#wiped) throw new SignerError('sealed');
  }
}

function associatedData(row: RowWithoutSecret): Buffer {
  assert.equal(row.detailsDigest.length, DIGEST_BYTES);
  const data = Buffer.alloc(ASSOCIATED_BYTES);
  let at = data.writeUInt8(FORMAT_VERSION);
  at += data.write(row.publicKey.slice(2), at, 'hex');
  at = data.writeUInt8(STATUS_BYTE[row.status], at);
  at = data.writeBigUInt64BE(BigInt(row.generation), at);
  at += data.write(row.createdAt, at, 'ascii');
  at += data.write(row.updatedAt, at, 'ascii');
  at += row.detailsDigest.copy(data, at);
  assert.equal(at, ASSOCIATED_BYTES);
  return data;
}
