// The identity of a boot, as its readers verify it. A signer writes one, and reads none.

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { z } from 'zod';
import { MAX_DOCUMENT_BYTES } from '../attestation/document.ts';
import { parseJson } from '../formats/parse-json.ts';
import { HEAD_SIGNATURE_BYTES, KEY_HASH_BYTES, keyHash, originOf, type ReadHead, SIGNATURE_LINE } from './head.ts';
import { type BootIdentity, bootOf, encodeIdentity } from './identity.ts';

const KEY_BYTES = 32;
const MAX_CHARACTERS = 20_480;

const schema = z.strictObject({
  version: z.literal(1),
  kind: z.enum(['attested', 'unattested']),
  public_key: z.string().transform((text) => Buffer.from(text, 'base64')),
  genesis_validators_root: z.string().regex(/^0x[0-9a-f]{64}$/),
  document: z
    .string()
    .transform((text) => Buffer.from(text, 'base64'))
    .nullable(),
});

/** Undefined for a text that is no identity. */
export function readIdentity(text: string): BootIdentity | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const parsed = schema.safeParse(parseJson(text)).data;
  if (parsed === undefined) return undefined;
  const { kind, public_key: publicKey, genesis_validators_root: genesisValidatorsRoot, document } = parsed;
  const identity = { kind, publicKey, genesisValidatorsRoot, document };
  if (publicKey.length !== KEY_BYTES || (document === null) !== (kind === 'unattested')) return undefined;
  if (document !== null && (document.length === 0 || document.length > MAX_DOCUMENT_BYTES)) return undefined;
  // One spelling: a member that is there twice, or a base64 with other bits, does not come out as it was.
  return encodeIdentity(identity) === text ? identity : undefined;
}

function ed25519Key(publicKey: Buffer): KeyObject {
  const x = publicKey.toString('base64url');
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
}

/** Whether the key of this boot signed the head. Signatures of others are not looked at. */
export function isSignedBy({ kind, boot, text, signatureLines }: ReadHead, { publicKey }: BootIdentity): boolean {
  const origin = originOf(kind, boot);
  const hash = keyHash(origin, publicKey);
  const ours = signatureLines.flatMap((line) => {
    const [, name, base64 = ''] = SIGNATURE_LINE.exec(line) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    return name === origin && hash.equals(bytes.subarray(0, KEY_HASH_BYTES)) ? [bytes] : [];
  });
  const [only] = ours;
  if (only?.length !== KEY_HASH_BYTES + HEAD_SIGNATURE_BYTES || ours.length > 1 || boot !== bootOf(publicKey))
    return false;
  return verify(null, Buffer.from(text), ed25519Key(publicKey), only.subarray(KEY_HASH_BYTES));
}
