// EIP-2335 keystores, version 4. The cost of a key derivation is bounded before anything is derived.

import { z } from 'zod';
import { canonicalPublicKey, decodeHex } from '../../../common/formats/hex.ts';
import { explainIssue } from '../../../common/formats/issues.ts';
import { parseJson } from '../../../common/formats/parse-json.ts';
import { keyShare, shareSchema } from '../../api/distributed.ts';
import { type Keystore, keyDerivationMemoryBytes } from './cipher.ts';

/** `reason` names the place and what is wrong there, never a value of the file. */
type ParsedKeystore = Keystore | { readonly refused: 'malformed_keystore'; readonly reason: string };

/** n = 2^20 with r = 8, four times EIP-2335's own parameters, takes 1 GiB and a little scratch. */
const MAX_SCRYPT_MEMORY_BYTES = 1040 * 2 ** 20;
export const MAX_SCRYPT_PARALLELIZATION = 16;
/** About 40 times EIP-2335's 2^18: some seconds. */
export const MAX_PBKDF2_ITERATIONS = 10_000_000;

/** Editors of Windows write it; Jackson, and so Web3Signer, reads on behind it. */
const BYTE_ORDER_MARK = /^\uFEFF/;

export function parseKeystoreJson(text: string): ParsedKeystore {
  const value = keystoreJson(text);
  return value === undefined ? { refused: 'malformed_keystore', reason: 'not JSON' } : parseKeystore(value);
}

/** Undefined when it is none. */
export function keystoreJson(text: string): unknown {
  return parseJson(text.replace(BYTE_ORDER_MARK, ''));
}

export function parseKeystore(value: unknown): ParsedKeystore {
  const parsed = KEYSTORE.safeParse(value, { error: explainIssue });
  if (!parsed.success) return { refused: 'malformed_keystore', reason: describe(parsed.error) };
  const { crypto, distributed, pubkey, uuid, path } = parsed.data;
  const kdf = crypto.kdf;
  const share = distributed && keyShare(distributed, pubkey ?? '');
  return {
    keyDerivation:
      kdf.function === 'scrypt'
        ? { kind: 'scrypt', n: kdf.params.n, r: kdf.params.r, p: kdf.params.p, salt: kdf.params.salt }
        : { kind: 'pbkdf2', iterations: kdf.params.c, salt: kdf.params.salt },
    checksum: crypto.checksum.message,
    initializationVector: crypto.cipher.params.iv,
    encryptedSecretKey: crypto.cipher.message,
    publicKey: share?.compositePublicKey ?? pubkey,
    share,
    uuid,
    path,
  };
}

const count = (maximum: number) => z.int().min(1).max(maximum);

const bytes = (length?: number) =>
  z
    .string()
    .min(1)
    .max(1024)
    .transform((text, context) => {
      const decoded = decodeHex(text, length);
      if (decoded !== undefined) return decoded;
      context.addIssue(length === undefined ? 'expected hex' : `expected ${length} bytes of hex`);
      return z.NEVER;
    });

const SCRYPT = z.object({
  function: z.literal('scrypt'),
  params: z
    .object({
      dklen: z.literal(32),
      n: count(2 ** 30),
      r: count(2 ** 20),
      p: count(MAX_SCRYPT_PARALLELIZATION),
      salt: bytes(),
    })
    .superRefine(({ n, r, p, salt }, context) => {
      if (n < 2 || !Number.isInteger(Math.log2(n))) {
        context.addIssue({ code: 'custom', path: ['n'], message: 'scrypt needs a power of two' });
      }
      // RFC 7914 §2: N is less than 2^(128 * r / 8).
      if (Math.log2(n) >= 16 * r) context.addIssue({ code: 'custom', path: ['n'], message: 'too large for this r' });
      const memoryBytes = keyDerivationMemoryBytes({ kind: 'scrypt', n, r, p, salt });
      if (memoryBytes > MAX_SCRYPT_MEMORY_BYTES) {
        const limit = `${MAX_SCRYPT_MEMORY_BYTES / 2 ** 20} MiB`;
        const message = `scrypt would take ${Math.ceil(memoryBytes / 2 ** 20)} MiB, the limit is ${limit}`;
        context.addIssue({ code: 'custom', path: ['n'], message });
      }
    }),
});

const PBKDF2 = z.object({
  function: z.literal('pbkdf2'),
  params: z.object({
    dklen: z.literal(32),
    c: count(MAX_PBKDF2_ITERATIONS),
    prf: z.literal('hmac-sha256'),
    salt: bytes(),
  }),
});

const KEYSTORE = z
  .object({
    version: z.literal(4),
    crypto: z.object({
      kdf: z.discriminatedUnion('function', [SCRYPT, PBKDF2]),
      checksum: z.object({ function: z.literal('sha256'), message: bytes(32) }),
      cipher: z.object({
        function: z.literal('aes-128-ctr'),
        params: z.object({ iv: bytes(16) }),
        message: bytes(32),
      }),
    }),
    pubkey: z
      .string()
      .optional()
      .transform((text, context) => {
        if (text === undefined || text === '') return undefined;
        const canonical = canonicalPublicKey(text);
        if (canonical === undefined) context.addIssue('expected 48 bytes of hex');
        return canonical;
      }),
    uuid: textLike(/^[0-9A-Za-z-]{1,64}$/),
    path: textLike(/^m(?:\/[0-9]{1,10}){1,8}$/),
    distributed: shareSchema.optional(),
  })
  .refine(({ distributed, pubkey }) => distributed === undefined || pubkey !== undefined, {
    path: ['pubkey'],
    message: 'the keystore of a share names the public key of the share',
  });

/** What no key depends on. */
function textLike(form: RegExp) {
  return z
    .unknown()
    .optional()
    .transform((value) => (typeof value === 'string' && form.test(value) ? value : undefined));
}

function describe(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'not a keystore';
  const place = issue.path.join('.');
  return place === '' ? issue.message : `${place}: ${issue.message}`;
}
