// What the enclave shows a TLS client: a fresh key, and a certificate with evidence that the key lives in this image.
// The document binds the key through its user data, so that it is worth nothing in another certificate
// (specification/evidence.md#tls).

import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../../observe/clock.ts';
import { keyBinding } from '../../api/attestation.ts';
import { evidenceOf } from '../nsm/evidence.ts';
import type { Nsm } from '../nsm/nsm.ts';
import { createAttestedCertificate, generateCertificateKey, privateKeyPem } from './x509.ts';

export interface RatlsIdentity {
  /** PEM. */
  readonly cert: string;
  /** PEM; wiped when another identity takes its place. */
  readonly key: Buffer;
  /** DER of the certificate's SubjectPublicKeyInfo. */
  readonly spki: Buffer;
  /** SHA-256 fingerprint of the certificate, which names it in the log. */
  readonly fingerprint: string;
  /** The attestation document in the certificate. */
  readonly document: Buffer;
  readonly madeAt: number;
  /** The certificate's last moment, milliseconds: never after that of its evidence. */
  readonly expiresAt: number;
  readonly evidenceExpiresAt: number;
  /** By how much the NSM's clock was ahead of the own, milliseconds; negative: behind. 0 when the answer allows it. */
  readonly nsmAheadMs: number;
}

export interface IdentityOptions {
  readonly nsm: Pick<Nsm, 'attest' | 'signsNothing'>;
  readonly clock: Pick<Clock, 'now'>;
  /** `tls.ratls.cert_validity_seconds`; the evidence may end it earlier. */
  readonly validitySeconds: number;
}

/**
 * For clients whose clock is behind: as much as clocks may be apart (operator/attestation/verify.ts). It makes the
 * certificate no longer.
 */
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
