// Attestation documents as a Nitro Secure Module writes them: COSE_Sign1 (RFC 9052 §4.2) with ES384 over a CBOR
// payload. Whatever payload a test gives is signed, right or wrong.

import { type CborValue, encodeCbor } from '../../../common/formats/cbor.ts';
import type { Credential } from './pki.ts';

export type DocumentPayload = Map<string, CborValue>;

export interface DocumentShape {
  readonly tagged?: boolean;
  /** The payload map with an indefinite length, as since December 2025. */
  readonly indefinite?: boolean;
  readonly protectedHeader?: Buffer;
}

const ES384_HEADER = encodeCbor(new Map([[1, -35]]));

/** @param signer the leaf of the payload's `certificate`, or another one */
export function signDocument(payload: DocumentPayload, signer: Credential, shape: DocumentShape = {}): Promise<Buffer> {
  return signPayload(shape.indefinite === true ? indefiniteMap(payload) : encodeCbor(payload), signer, shape);
}

export async function signPayload(
  bytes: Buffer,
  signer: Credential,
  { protectedHeader = ES384_HEADER, tagged = false }: DocumentShape = {},
): Promise<Buffer> {
  // RFC 9052 §4.4: Sig_structure; the signature is r ‖ s, as WebCrypto makes it.
  const signed = encodeCbor(['Signature1', protectedHeader, Buffer.alloc(0), bytes]);
  const algorithm = { name: 'ECDSA', hash: 'SHA-384' };
  const signature = Buffer.from(await crypto.subtle.sign(algorithm, signer.keys.privateKey, new Uint8Array(signed)));
  const document = encodeCbor([protectedHeader, new Map(), bytes, signature]);
  return tagged ? Buffer.concat([Buffer.from([0xd2]), document]) : document;
}

/** RFC 8949 §3.2.2. */
function indefiniteMap(entries: DocumentPayload): Buffer {
  const items = [...entries].flatMap(([key, value]) => [encodeCbor(key), encodeCbor(value)]);
  return Buffer.concat([Buffer.from([0xbf]), ...items, Buffer.from([0xff])]);
}
