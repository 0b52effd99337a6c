// Who keeps a log: the key of one boot, and what shows that a measured image has it
// (specification/receipts.md#identity). It refuses an identity in any other spelling. Whether its document is
// authentic, the caller judges.

import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { MAX_DOCUMENT_BYTES } from '../attestation/document.ts';

const KEY_BYTES = 32;
const BOOT_BYTES = 16;
const MAX_CHARACTERS = 20_480;
const BINDING_TAG = Buffer.from('strongroom receipts v1\0');

export type LogKind = 'attested' | 'unattested';

export interface BootIdentity {
  readonly kind: LogKind;
  /** Ed25519, as RFC 8032 §5.1.5 has it. */
  readonly publicKey: Buffer;
  /** Hex with 0x. */
  readonly genesisValidatorsRoot: string;
  /** An attestation document; null exactly when unattested. */
  readonly document: Buffer | null;
}

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

/** One line, without LF. */
export function encodeIdentity({ kind, publicKey, genesisValidatorsRoot, document }: BootIdentity): string {
  return JSON.stringify({
    version: 1,
    kind,
    public_key: publicKey.toString('base64'),
    genesis_validators_root: genesisValidatorsRoot,
    document: document === null ? null : document.toString('base64'),
  });
}

/** Undefined for a text that is no identity. */
export function readIdentity(text: string): BootIdentity | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const parsed = schema.safeParse(jsonOf(text)).data;
  if (parsed === undefined) return undefined;
  const { kind, public_key: publicKey, genesis_validators_root: genesisValidatorsRoot, document } = parsed;
  const identity = { kind, publicKey, genesisValidatorsRoot, document };
  if (publicKey.length !== KEY_BYTES || (document === null) !== (kind === 'unattested')) return undefined;
  if (document !== null && (document.length === 0 || document.length > MAX_DOCUMENT_BYTES)) return undefined;
  // One spelling: a member that is there twice, or a base64 with other bits, does not come out as it was.
  return encodeIdentity(identity) === text ? identity : undefined;
}

/** The value of a JSON text; undefined when it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The name of the boot: two keys have two names. */
export function bootOf(publicKey: Uint8Array): string {
  return createHash('sha256').update(publicKey).digest().subarray(0, BOOT_BYTES).toString('hex');
}

/** `user_data` of the identity's document. */
export function identityBinding(identity: BootIdentity): Buffer {
  const line = encodeIdentity({ ...identity, document: null });
  return Buffer.concat([BINDING_TAG, createHash('sha384').update(line).digest()]);
}

export function ed25519Key(publicKey: Buffer): KeyObject {
  const x = publicKey.toString('base64url');
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
}
