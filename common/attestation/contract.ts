// What an attested certificate and an attestation document have to say, for the side that makes them and the side that
// checks them (specification/evidence.md#tls).

import { createHash } from 'node:crypto';
import { z } from 'zod';

/** id-pe-cmw (RFC 9999): the certificate extension that carries a Conceptual Message Wrapper; not critical. */
export const CMW_EXTENSION_OID = '1.3.6.1.5.5.7.1.35';
export const DOCUMENT_MEDIA_TYPE = 'application/aws-nitro-document';
/** CMW indicator bit 2: the message is evidence. */
export const CMW_EVIDENCE = 4;

/** TLS exporter (RFC 8446 §7.5, RFC 5705): 32 bytes, without a context. */
export const EXPORTER_LABEL = 'EXPORTER-strongroom-attestation';
export const EXPORTER_BYTES = 32;
export const CLIENT_NONCE_BYTES = { min: 16, max: 64 } as const;

/** Bytes of `user_data`, `nonce` and `public_key` each at most (AWS Nitro Enclaves attestation process, §3.1). */
export const MAX_DOCUMENT_FIELD_BYTES = 1024;
export const PCR_COUNT = 32;
export const CONFIGURATION_PCR = 16;
export const CEREMONY_PCR = 17;
/** Measures the certificate that signed the image; zero without one. */
export const SIGNATURE_PCR = 8;

const BINDING_TAG = Buffer.from('strongroom ra-tls v1\0');

/** @param spki DER of the certificate's SubjectPublicKeyInfo */
export function keyBinding(spki: Uint8Array): Buffer {
  return Buffer.concat([BINDING_TAG, createHash('sha384').update(spki).digest()]);
}

/** It belongs to that connection, and to no other. */
export function connectionNonce(clientNonce: Uint8Array, exported: Uint8Array): Buffer {
  return createHash('sha256').update(clientNonce).update(exported).digest();
}

const registerSchema = z
  .string()
  .regex(/^[0-9a-f]{96}$/, 'must be 96 characters of hex in lower case')
  .refine((value) => !/^0+$/.test(value), 'must not be zero: every image in debug mode has that');

export const acceptedImagesSchema = z
  .array(z.strictObject({ PCR0: registerSchema, PCR1: registerSchema, PCR2: registerSchema }))
  .max(64, 'must name at most 64 images');

export type AcceptedImage = z.output<typeof acceptedImagesSchema>[number];

/** No flag, variable or file of an operator gives another. */
export interface DocumentProvider {
  readonly name: string;
  readonly rootSha256: string;
}

/** AWS_NitroEnclaves_Root-G1, good until 2049 (AWS Nitro Enclaves attestation process, §3.2). */
export const AWS_NITRO: DocumentProvider = {
  name: 'AWS Nitro Enclaves',
  rootSha256: '641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b',
};
