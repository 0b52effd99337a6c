// The evidence in an attested TLS certificate: the extension id-pe-cmw (RFC 9999) with a Nitro document that is bound
// to the certificate's own key. It trusts nothing of the certificate, which anybody can make: it has to be in its
// validity and signed by itself, and a certificate without evidence, or with more than one form of it, is refused.

import type { X509Certificate } from 'node:crypto';
import { CMW_EVIDENCE, CMW_EXTENSION_OID, DOCUMENT_MEDIA_TYPE, keyBinding } from '../../enclave/api/attestation.ts';
import { CborError, type CborValue, decodeCbor } from '../../formats/cbor.ts';
import { readExtensions, readOctetString } from './certificate-extensions.ts';
import { type Moment, parseCertificate } from './chain.ts';
import { demand, EvidenceError } from './failure.ts';
import { refuseEvidence, toleranceMs, type Verdict, type VerifyOptions, verifyDocument } from './verify.ts';

/** Bytes of a certificate as it comes; the document alone is at most 12 KiB. */
const MAX_CERTIFICATE_BYTES = 16 * 1024;

export interface CertificateEvidence {
  readonly document: Buffer;
  /** What `user_data` of the document has to be, and of any other document of the same peer. */
  readonly binding: Buffer;
  /** The end of the TLS certificate, milliseconds since the epoch. */
  readonly expiresAt: number;
}

export type CertificateOptions = Omit<VerifyOptions, 'expectedUserData'>;

/** Never throws for any bytes. @param der the certificate of the peer */
export function verifyCertificate(
  der: Uint8Array,
  options: CertificateOptions,
): { readonly verdict: Verdict; readonly evidence: CertificateEvidence | undefined } {
  try {
    const evidence = readCertificateEvidence(der, { at: options.at, toleranceMs: toleranceMs(options) });
    const verdict = verifyDocument(evidence.document, { ...options, expectedUserData: evidence.binding });
    return { verdict, evidence };
  } catch (error) {
    if (!(error instanceof EvidenceError)) throw error;
    return { verdict: refuseEvidence(error.failures[0]), evidence: undefined };
  }
}

function readCertificateEvidence(der: Uint8Array, moment: Moment): CertificateEvidence {
  demand(der.length <= MAX_CERTIFICATE_BYTES, 'malformed_certificate', `more than ${MAX_CERTIFICATE_BYTES} bytes`);
  const { x509, key } = parseCertificate(der);
  const extension = readExtensions(der).values.get(CMW_EXTENSION_OID);
  demand(extension !== undefined, 'no_evidence', `it has no extension ${CMW_EXTENSION_OID}`);
  checkCertificate(x509, moment);
  return {
    document: readCmwRecord(readOctetString(extension)),
    binding: keyBinding(key.export({ type: 'spki', format: 'der' })),
    expiresAt: x509.validToDate.getTime(),
  };
}

function checkCertificate(x509: X509Certificate, { at, toleranceMs }: Moment): void {
  const [notBefore, notAfter] = [x509.validFromDate, x509.validToDate];
  const readable = Number.isFinite(notBefore.getTime() + notAfter.getTime());
  demand(readable, 'malformed_certificate', 'its validity cannot be read');
  const begun = at + toleranceMs >= notBefore.getTime();
  demand(begun, 'not_yet_valid', `the TLS certificate is valid from ${notBefore.toISOString()}`);
  demand(at <= notAfter.getTime(), 'expired', `the TLS certificate was valid until ${notAfter.toISOString()}`);
  demand(isSelfSigned(x509), 'broken_chain', 'the TLS certificate is not signed with its own key');
}

/** Any kind of key may be in it. */
function isSelfSigned(x509: X509Certificate): boolean {
  try {
    return x509.verify(x509.publicKey);
  } catch {
    return false;
  }
}

/** RFC 9999: a record of media type, message and indicators. */
function readCmwRecord(bytes: Uint8Array): Buffer {
  const record = decodeRecord(bytes);
  const [mediaType, document, indicators, ...more] = Array.isArray(record) ? (record as readonly CborValue[]) : [];
  demand(mediaType === DOCUMENT_MEDIA_TYPE, 'malformed_evidence', `its media type is not ${DOCUMENT_MEDIA_TYPE}`);
  demand(Buffer.isBuffer(document), 'malformed_evidence', 'the record holds no document');
  demand(
    indicators === CMW_EVIDENCE && more.length === 0,
    'malformed_evidence',
    'the record is not marked as evidence',
  );
  return document;
}

function decodeRecord(bytes: Uint8Array): CborValue {
  try {
    return decodeCbor(bytes);
  } catch (error) {
    if (error instanceof CborError) throw new EvidenceError({ code: 'malformed_evidence', detail: error.message });
    throw error;
  }
}
