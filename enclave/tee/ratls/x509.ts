// Makes the self-signed certificate of RA-TLS: the one file through which the X.509 package enters the enclave. The
// certificate says nothing of itself; what it is worth is the evidence in its extension, which its client verifies
// (specification/evidence.md#tls).

import 'reflect-metadata'; // the package needs it before it is loaded
import { KeyObject, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { encodeCbor } from '../../../formats/cbor.ts';
import { CMW_EVIDENCE, CMW_EXTENSION_OID, DOCUMENT_MEDIA_TYPE } from '../../api/attestation.ts';

/** A P-256 key that is used for one certificate. */
export interface CertificateKey {
  readonly pair: webcrypto.CryptoKeyPair;
  /** DER of its SubjectPublicKeyInfo. */
  readonly spki: Buffer;
}

export interface AttestedCertificateOptions {
  readonly key: CertificateKey;
  readonly document: Uint8Array;
  /** Milliseconds; a certificate counts whole seconds. */
  readonly notBefore: number;
  readonly notAfter: number;
}

const P256 = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SHA256 = { name: 'ECDSA', hash: 'SHA-256' } as const;
const COMMON_NAME = 'CN=strongroom';
const OCTET_STRING = 0x04;

export async function generateCertificateKey(): Promise<CertificateKey> {
  const pair = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  return { pair, spki: Buffer.from(await webcrypto.subtle.exportKey('spki', pair.publicKey)) };
}

/** @returns PEM, which is what TLS takes */
export async function createAttestedCertificate(options: AttestedCertificateOptions): Promise<string> {
  const { key, document, notBefore, notAfter } = options;
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: COMMON_NAME,
    keys: key.pair,
    signingAlgorithm: SHA256,
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new Extension(CMW_EXTENSION_OID, false, new Uint8Array(octetString(conceptualMessage(document)))),
    ],
  });
  return certificate.toString('pem');
}

/** PKCS #8 as PEM: TLS takes no other form. The caller wipes it. */
export function privateKeyPem({ pair }: CertificateKey): Buffer {
  return Buffer.from(KeyObject.from(pair.privateKey).export({ type: 'pkcs8', format: 'pem' }));
}

/** RFC 9999: a CBOR record of media type, value and indicator. */
function conceptualMessage(document: Uint8Array): Buffer {
  return encodeCbor([DOCUMENT_MEDIA_TYPE, Buffer.from(document), CMW_EVIDENCE]);
}

/** RFC 9999: in a certificate the CBOR form stands in an OCTET STRING (X.690 §8.1.3, §10.1: the shortest length). */
function octetString(content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([OCTET_STRING, length]), content]);
  const digits = Buffer.from(length.toString(16).padStart(length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([OCTET_STRING, 0x80 | digits.length]), digits, content]);
}
