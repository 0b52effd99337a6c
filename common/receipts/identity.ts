// Who keeps a log: the key of one boot, and what shows that a measured image has it
// (specification/receipts.md#identity). It refuses an identity in any other spelling. Whether its document is
// authentic, the caller judges.

import { createHash } from 'node:crypto';

const BOOT_BYTES = 16;
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

/** The name of the boot: two keys have two names. */
export function bootOf(publicKey: Uint8Array): string {
  return createHash('sha256').update(publicKey).digest().subarray(0, BOOT_BYTES).toString('hex');
}

/** `user_data` of the identity's document. */
export function identityBinding(identity: BootIdentity): Buffer {
  const line = encodeIdentity({ ...identity, document: null });
  return Buffer.concat([BINDING_TAG, createHash('sha384').update(line).digest()]);
}
