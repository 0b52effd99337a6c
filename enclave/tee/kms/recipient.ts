// The enclave as the recipient of what KMS decrypts (specification/enclave.md#kms): an RSA key that lives as long as
// the process and never leaves it, an attestation document for every call, which carries its public half, and the
// opening of what KMS encrypted to it. It trusts KMS to have checked the document; it refuses envelopes of any other
// form, or for another key (cms.ts).

import { createHash, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { Nsm } from '../nsm/nsm.ts';
import { openEnvelope } from './cms.ts';

/** Also the only KeyEncryptionAlgorithm that KMS knows. */
export const KEY_ENCRYPTION_ALGORITHM = 'RSAES_OAEP_SHA_256';

export interface KmsRecipient {
  /** A document as fresh as `nsm` gives it: KMS takes none that is older than five minutes. @throws NsmError */
  attest(): Promise<Buffer>;
  /** What KMS enveloped to this process, the caller's to wipe. @throws EnvelopeError */
  open(ciphertextForRecipient: Uint8Array): Buffer;
}

/**
 * The private key stays in OpenSSL's memory and goes with the process; no copy of it is ever on the JavaScript heap.
 */
export async function createKmsRecipient({ nsm }: { readonly nsm: Pick<Nsm, 'attest'> }): Promise<KmsRecipient> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const keyIdentifier = createHash('sha256').update(spki).digest();
  return {
    attest: () => nsm.attest({ publicKey: spki }),
    open: (ciphertextForRecipient) => openEnvelope(ciphertextForRecipient, { privateKey, keyIdentifier }),
  };
}

/** AWS KMS Developer Guide, Nitro Enclaves: the public key of the document is RSA of 2048 to 4096 bits. */
const MODULUS_BITS = 2048;
