// The evidence in an attested TLS certificate (specification/evidence.md#tls). It trusts nothing of the certificate,
// which anybody can make.

import {
  type Certificate,
  certificateKey,
  isSignedWith,
  readCertificate,
  TAG,
  valuesIn,
} from '../../common/attestation/certificate.ts';
import type { Moment } from '../../common/attestation/chain.ts';
import { CMW_EVIDENCE, CMW_EXTENSION_OID, DOCUMENT_MEDIA_TYPE, keyBinding } from '../../common/attestation/contract.ts';
import { demand, EvidenceError, type EvidenceFailure } from '../../common/attestation/failure.ts';
import {
  type EvidenceVerdict,
  type RefusedVerdict,
  STEP_NAMES,
  toleranceMs,
  type VerificationStep,
  type VerifyOptions,
  verifyDocument,
} from '../../common/attestation/verify.ts';
import { CborError, type CborValue, decodeCbor } from '../../common/formats/cbor.ts';

/** Bytes of a certificate as it comes; the document alone is at most 12 KiB. */
const MAX_CERTIFICATE_BYTES = 16 * 1024;

export interface CertificateEvidence {
  readonly document: Buffer;
  /** What `user_data` of the document has to be, and of any other document of the same peer. */
  readonly binding: Buffer;
  readonly expiresAt: number;
}

type CertificateOptions = Omit<VerifyOptions, 'expectedUserData'>;

/** Never throws for any bytes. @param der the certificate of the peer */
export function verifyCertificate(
  der: Uint8Array,
  options: CertificateOptions,
): { readonly verdict: EvidenceVerdict; readonly evidence: CertificateEvidence | undefined } {
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
  const certificate = readCertificate(der);
  const { cmw, spki, notAfter } = certificate;
  demand(cmw !== undefined, 'no_evidence', `it has no extension ${CMW_EXTENSION_OID}`);
  checkCertificate(certificate, moment);
  return {
    document: readCmwRecord(readOctetString(cmw)),
    binding: keyBinding(spki),
    expiresAt: notAfter,
  };
}

function readOctetString(der: Buffer): Buffer {
  const [value, ...more] = valuesIn(der, 'malformed_evidence');
  demand(value?.tag === TAG.octets && more.length === 0, 'malformed_evidence', 'not one OCTET STRING in DER');
  return value.content;
}

function checkCertificate(certificate: Certificate, { at, toleranceMs }: Moment): void {
  const { notBefore, notAfter } = certificate;
  const key = certificateKey(certificate, 'P-256');
  const kind = 'not a key of P-256 and a signature of ECDSA and SHA-256';
  demand(key !== undefined, 'certificate_misuse', `the TLS certificate: ${kind}`);
  const begins = new Date(notBefore).toISOString();
  demand(at + toleranceMs >= notBefore, 'not_yet_valid', `the TLS certificate is valid from ${begins}`);
  demand(at <= notAfter, 'expired', `the TLS certificate was valid until ${new Date(notAfter).toISOString()}`);
  demand(isSignedWith(certificate, key, 'P-256'), 'broken_chain', 'the TLS certificate is not signed with its own key');
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

export function refuseEvidence(failure: EvidenceFailure): RefusedVerdict {
  const steps = STEP_NAMES.map((name): VerificationStep => ({ name, result: 'not_reached', detail: '' }));
  return { authentic: false, expected: false, document: undefined, chain: undefined, steps, failures: [failure] };
}
