// EIP-2335 decryption on node:crypto. A key derivation takes up to a second and 256 MiB.

import { createDecipheriv, createHash, pbkdf2Sync, scryptSync, timingSafeEqual } from 'node:crypto';
import type { KeyShare } from '../../api/distributed.ts';

type KeyDerivation =
  | { readonly kind: 'scrypt'; readonly n: number; readonly r: number; readonly p: number; readonly salt: Uint8Array }
  | { readonly kind: 'pbkdf2'; readonly iterations: number; readonly salt: Uint8Array };

export interface Keystore {
  readonly keyDerivation: KeyDerivation;
  readonly checksum: Uint8Array;
  readonly initializationVector: Uint8Array;
  readonly encryptedSecretKey: Uint8Array;
  /** The validator's. */
  readonly publicKey: string | undefined;
  /** Undefined when it holds the whole key. */
  readonly share: KeyShare | undefined;
  /** As the file spells it; undefined when it is none of letters, digits and dashes. */
  readonly uuid: string | undefined;
  /** EIP-2334; undefined when it is none. */
  readonly path: string | undefined;
}

export type DecryptedKeystore =
  | { readonly secretKey: Uint8Array<ArrayBuffer> }
  | { readonly refused: 'wrong_password' | 'password_not_utf8' };

/** @returns the secret, 32 bytes in an ArrayBuffer of its own. The caller wipes it, and the password. */
export function decryptKeystore(keystore: Keystore, password: Uint8Array): DecryptedKeystore {
  const forms = passwordForms(password);
  if (forms.length === 0) return { refused: 'password_not_utf8' };
  try {
    for (const form of forms) {
      const opened = openWith(keystore, form);
      if (opened !== undefined) return opened;
    }
    return { refused: 'wrong_password' };
  } finally {
    for (const form of forms) form.fill(0);
  }
}

function openWith(keystore: Keystore, password: Uint8Array): DecryptedKeystore | undefined {
  const derived = deriveKey(keystore.keyDerivation, password); // throws where there is no memory for it
  try {
    return decrypt(keystore, derived);
  } finally {
    derived.fill(0);
  }
}

/** A small array lies on the JavaScript heap, where what moves or transfers it leaves a copy. */
export function copyOffHeap(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

/** What scrypt takes while it runs, as OpenSSL counts it (B, V and two blocks of scratch). */
export function keyDerivationMemoryBytes(derivation: KeyDerivation): number {
  return derivation.kind === 'scrypt' ? 128 * derivation.r * (derivation.n + derivation.p + 2) : 0;
}

/**
 * What may have been the password, the likeliest first, each another one: EIP-2335's (Password requirements) without
 * the byte order mark of an editor, the same with it, that of old tools, and without the blanks at its end that a hand
 * left in the file. None when the bytes are not UTF-8.
 */
export function passwordForms(password: Uint8Array): Uint8Array[] {
  // ASCII is its own NFKD: the usual password never becomes a string, which could not be wiped.
  if (password.every((byte) => byte < 0x80)) {
    const written = withoutControls(password);
    const end = written.findLastIndex((byte) => byte !== 0x20) + 1;
    return end === 0 || end === written.length ? [written] : [written, written.subarray(0, end)];
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(password);
    const written = text.replace(/^\uFEFF/, '');
    const trimmed = normalised(written.trimEnd());
    const forms = new Set([normalised(written), normalised(text), withoutMarks(written), trimmed]);
    return [...forms].map((form) => new TextEncoder().encode(form));
  } catch {
    return [];
  }
}

function normalised(text: string): string {
  return text.normalize('NFKD').replace(/\p{Cc}/gu, '');
}

/**
 * What go-eth2-wallet-encryptor-keystorev4 made of a password until 2021, and so old ethdo, Prysm and go-ssv: of each
 * character with its combining marks, the first code point alone, and only ASCII control codes left out.
 */
function withoutMarks(text: string): string {
  const syllables = text.replace(/[\uAC00-\uD7A3]/g, (syllable) => syllable.normalize('NFKD').charAt(0));
  const [first = '', ...others] = syllables.normalize('NFKD');
  const kept = [first, ...others.filter((point) => !isCombining(point))];
  return kept.filter((point) => point >= ' ' && point !== '\x7f').join('');
}

/** Has a combining class: then it moves before U+0345, whose class is the highest (Unicode, chapter 3.11). */
function isCombining(point: string): boolean {
  return point === '\u0345' || !`\u0345${point}`.normalize('NFD').startsWith('\u0345');
}

function withoutControls(ascii: Uint8Array): Uint8Array {
  const kept = copyOffHeap(ascii);
  let length = 0;
  for (const byte of ascii) if (byte >= 0x20 && byte !== 0x7f) kept[length++] = byte;
  kept.fill(0, length);
  return kept.subarray(0, length);
}

function deriveKey(derivation: KeyDerivation, password: Uint8Array): Buffer {
  if (derivation.kind === 'pbkdf2') return pbkdf2Sync(password, derivation.salt, derivation.iterations, 32, 'sha256');
  const { n, r, p, salt } = derivation;
  return scryptSync(password, salt, 32, { N: n, r, p, maxmem: keyDerivationMemoryBytes(derivation) });
}

/** EIP-2335, Decryption: the second half of the derived key checks the password, the first half decrypts. */
function decrypt(keystore: Keystore, derived: Buffer): DecryptedKeystore | undefined {
  const checksum = createHash('sha256').update(derived.subarray(16, 32)).update(keystore.encryptedSecretKey).digest();
  if (!timingSafeEqual(checksum, keystore.checksum)) return undefined;
  const decipher = createDecipheriv('aes-128-ctr', derived.subarray(0, 16), keystore.initializationVector);
  const plain = decipher.update(keystore.encryptedSecretKey);
  const secretKey = copyOffHeap(plain);
  plain.fill(0);
  // OpenSSL leaves what it decrypted last in vector registers of the thread, which a core has.
  createDecipheriv('aes-128-ctr', plain.subarray(16), plain.subarray(16)).update(plain);
  return { secretKey };
}
