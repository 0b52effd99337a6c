// Makes key directories for tests: deterministic secret keys, raw key files, and EIP-2335 keystores with a key
// derivation that costs nothing. The keys are public by construction; never use them for anything that holds value.

import { createCipheriv, createHash, pbkdf2Sync, randomUUID, scryptSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SecretKey } from '@chainsafe/blst';
import { keyDerivationMemoryBytes, passwordForms } from '../../signer/keys/keystores/cipher.ts';
import type { SecretKeyVault } from '../../signer/keys/vault.ts';

export type KeystoreCost =
  | { readonly kind: 'pbkdf2'; readonly iterations: number }
  | { readonly kind: 'scrypt'; readonly n: number; readonly r: number; readonly p: number };

export const LIGHT_PBKDF2: KeystoreCost = { kind: 'pbkdf2', iterations: 1 };
export const LIGHT_SCRYPT: KeystoreCost = { kind: 'scrypt', n: 2, r: 8, p: 1 };
/** What EIP-2335's own tests use. */
export const FULL_PBKDF2: KeystoreCost = { kind: 'pbkdf2', iterations: 2 ** 18 };
export const FULL_SCRYPT: KeystoreCost = { kind: 'scrypt', n: 2 ** 18, r: 8, p: 1 };

/** The same valid secret key for the same number, in every run. */
export function testSecret(number: number): Uint8Array {
  const secret = createHash('sha256').update(`strongroom test key ${number}`).digest();
  // Below the group order, which begins with 0x73.
  secret[0] = (secret[0] ?? 0) & 0x3f;
  return Uint8Array.from(secret);
}

/** Canonical: `0x` and 96 lower-case digits. */
export function publicKeyOf(secret: Uint8Array): string {
  return `0x${Buffer.from(SecretKey.fromBytes(secret).toPublicKey().toBytes()).toString('hex')}`;
}

/** A new directory, and how to delete it with all that is in it. */
export function makeKeyDirectory(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'strongroom-keys-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Writes NAME.yaml with the key in it. @returns the public key */
export function writeRawKey(directory: string, name: string, secret: Uint8Array): string {
  const privateKey = `0x${Buffer.from(secret).toString('hex')}`;
  writeFileSync(join(directory, `${name}.yaml`), `type: file-raw\nkeyType: BLS\nprivateKey: "${privateKey}"\n`);
  return publicKeyOf(secret);
}

/** Writes NAME.json, NAME.password and NAME.yaml, which names both. @returns the public key */
export function writeKeystore(
  directory: string,
  name: string,
  secret: Uint8Array,
  password: string,
  cost: KeystoreCost = LIGHT_PBKDF2,
): string {
  writeFileSync(join(directory, `${name}.json`), JSON.stringify(encryptKeystore(secret, password, cost)));
  writeFileSync(join(directory, `${name}.password`), `${password}\n`);
  writeFileSync(
    join(directory, `${name}.yaml`),
    `type: file-keystore\nkeyType: BLS\nkeystoreFile: ${name}.json\nkeystorePasswordFile: ${name}.password\n`,
  );
  return publicKeyOf(secret);
}

/**
 * An EIP-2335 keystore as JSON has it. Salt and vector follow from the secret, so that the same call gives the same
 * file but its uuid.
 */
export function encryptKeystore(
  secret: Uint8Array,
  password: string,
  cost: KeystoreCost = LIGHT_PBKDF2,
  pubkey: string = publicKeyOf(secret).slice(2),
) {
  const [processed] = passwordForms(Buffer.from(password, 'utf8'));
  if (processed === undefined) throw new Error('not a password');
  const salt = createHash('sha256').update('salt').update(secret).digest();
  const iv = createHash('sha256').update('iv').update(secret).digest().subarray(0, 16);
  const derived = deriveKey(cost, processed, salt);
  const cipher = createCipheriv('aes-128-ctr', derived.subarray(0, 16), iv).update(secret);
  const checksum = createHash('sha256').update(derived.subarray(16, 32)).update(cipher).digest();
  return {
    crypto: {
      kdf: kdfOf(cost, salt),
      checksum: { function: 'sha256', params: {}, message: checksum.toString('hex') },
      cipher: { function: 'aes-128-ctr', params: { iv: iv.toString('hex') }, message: cipher.toString('hex') },
    },
    description: '',
    pubkey,
    path: 'm/12381/3600/0/0/0',
    uuid: randomUUID(),
    version: 4,
  };
}

function deriveKey(cost: KeystoreCost, password: Uint8Array, salt: Uint8Array): Buffer {
  if (cost.kind === 'pbkdf2') return pbkdf2Sync(password, salt, cost.iterations, 32, 'sha256');
  const { n, r, p } = cost;
  return scryptSync(password, salt, 32, { N: n, r, p, maxmem: keyDerivationMemoryBytes({ ...cost, salt }) });
}

function kdfOf(cost: KeystoreCost, salt: Buffer) {
  const common = { dklen: 32, salt: salt.toString('hex') };
  return cost.kind === 'pbkdf2'
    ? { function: 'pbkdf2', params: { ...common, c: cost.iterations, prf: 'hmac-sha256' }, message: '' }
    : { function: 'scrypt', params: { ...common, n: cost.n, r: cost.r, p: cost.p }, message: '' };
}

/** The methods of a core, of which a test replaces some. */
export function vaultOf(vault: SecretKeyVault): SecretKeyVault {
  const { sharePublicKey } = vault;
  return {
    ...(sharePublicKey === undefined ? {} : { sharePublicKey: sharePublicKey.bind(vault) }),
    addKey: (secretKey) => vault.addKey(secretKey),
    addKeys: (secretKeys) => vault.addKeys(secretKeys),
    removeKey: (handle) => vault.removeKey(handle),
    wipe: () => vault.wipe(),
  };
}
