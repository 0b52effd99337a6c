// What the enclave shows a TLS client: a fresh key, and a certificate with evidence that is bound to it
// (specification/evidence.md#tls).

import { X509Certificate } from 'node:crypto';
import { keyBinding } from '../../common/attestation/contract.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Nsm } from '../../signer/tee/nsm.ts';
import { evidenceOf } from '../nsm/evidence.ts';

export interface RatlsIdentity {
  readonly cert: string;
  readonly key: Buffer;
  readonly spki: Buffer;
  /** SHA-256 of the certificate. */
  readonly fingerprint: string;
  readonly document: Buffer;
  readonly madeAt: number;
  /** Milliseconds; never after the end of the evidence. */
  readonly expiresAt: number;
  readonly evidenceExpiresAt: number;
  /** The NSM's clock against the own, milliseconds; 0 when the answer allows it. */
  readonly nsmAheadMs: number;
}

interface IdentityOptions {
  readonly nsm: Pick<Nsm, 'attest' | 'signsNothing'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly validitySeconds: number;
}

/** For clients whose clock is behind (common/attestation/verify.ts). It makes the certificate no longer. */
const BACKDATED_MS = 300_000;

/** @throws NsmError when the NSM gives no evidence */
export async function createIdentity({ nsm, clock, validitySeconds }: IdentityOptions): Promise<RatlsIdentity> {
  const key = await generateCertificateKey();
  const askedAt = clock.now();
  const {
    document,
    expiresAt: evidenceExpiresAt,
    timestamp,
  } = evidenceOf(await nsm.attest({ userData: keyBinding(key.spki) }), nsm);
  const madeAt = clock.now();
  const lastMoment = Math.min(madeAt + validitySeconds * 1000, evidenceExpiresAt);
  const expiresAt = Math.floor(lastMoment / 1000) * 1000;
  const cert = await createAttestedCertificate({
    key,
    document,
    notBefore: madeAt - BACKDATED_MS,
    notAfter: expiresAt,
  });
  return {
    cert,
    key: privateKeyPem(key),
    spki: key.spki,
    fingerprint: new X509Certificate(cert).fingerprint256,
    document,
    madeAt,
    expiresAt,
    evidenceExpiresAt,
    nsmAheadMs: outside(timestamp, askedAt, madeAt),
  };
}

/** How far it lies after the one or before the other; between them the two clocks may agree. */
function outside(timestamp: number, askedAt: number, madeAt: number): number {
  if (timestamp > madeAt) return timestamp - madeAt;
  return timestamp < askedAt ? timestamp - askedAt : 0;
}

// The self-signed certificate of RA-TLS: the one file through which the X.509 package enters the enclave.

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
import { CMW_EVIDENCE, CMW_EXTENSION_OID, DOCUMENT_MEDIA_TYPE } from '../../common/attestation/contract.ts';
import { encodeCbor } from '../../common/formats/cbor.ts';

export interface CertificateKey {
  readonly pair: webcrypto.CryptoKeyPair;
  readonly spki: Buffer;
}

interface AttestedCertificateOptions {
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

/** @returns PEM */
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

/** PKCS #8 as PEM; the caller wipes it. */
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
