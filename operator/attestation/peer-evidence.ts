// What an attested peer proves over one TLS 1.3 connection: the evidence in its certificate, then a fresh document that
// is bound to this connection (specification/evidence.md#nonce). Nothing but the nonce is sent.

import { randomBytes } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import {
  connectionNonce,
  type DocumentProvider,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
} from '../../common/attestation/contract.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import { CLOCK_SKEW_SECONDS, type EvidenceVerdict, verifyDocument } from '../../common/attestation/verify.ts';
import { type CertificateEvidence, refuseEvidence, verifyCertificate } from './certificate-evidence.ts';
import { fetchDocument } from './fresh-document.ts';
import { type JudgedEvidence, sha256Of } from './report.ts';

const CLIENT_NONCE_BYTES = 32;
/** RFC 8446 §7.5: no context and an empty one are the same. */
const NO_CONTEXT = Buffer.alloc(0);
/** How old a document may be that was asked for just now: as far as clocks may be apart. */
const MAX_FRESH_AGE_SECONDS = CLOCK_SKEW_SECONDS;

export interface AttestationPolicy {
  readonly provider: DocumentProvider;
  readonly referenceValues: ReferenceValues | undefined;
  readonly maxAgeSeconds: number;
  readonly now: () => number;
}

export interface PeerEvidence {
  readonly certificate: EvidenceVerdict;
  /** Undefined when it was not asked for, because of the first. */
  readonly fresh: EvidenceVerdict | undefined;
  /** Until when both prove something, milliseconds; 0 when one does not. */
  readonly expiresAt: number;
  readonly judged: readonly JudgedEvidence[];
}

interface Inquiry {
  readonly host: string;
  readonly signal: AbortSignal;
  readonly accepts: (certificate: EvidenceVerdict) => boolean;
}

/** @throws the socket's own error; CommandFailure when there is no answer to judge */
export async function collectEvidence(
  socket: TLSSocket,
  policy: AttestationPolicy,
  { host, signal, accepts }: Inquiry,
): Promise<PeerEvidence> {
  const der = socket.getPeerX509Certificate()?.raw; // works once on Node 20 to 24: it is kept
  if (der === undefined) {
    const failure = { code: 'no_evidence', detail: 'the peer shows no certificate' } as const;
    return { certificate: refuseEvidence(failure), fresh: undefined, expiresAt: 0, judged: [] };
  }
  const at = policy.now();
  const { verdict: certificate, evidence } = verifyCertificate(der, { ...policy, at, live: true });
  const first: JudgedEvidence = { kind: 'certificate', bytes: der, sha256: sha256Of(der), at, live: true };
  if (evidence === undefined || !accepts(certificate))
    return { certificate, fresh: undefined, expiresAt: 0, judged: [first] };
  const second = await fetchFresh(socket, policy, { host, signal });
  const fresh = verifyFresh(second, policy, evidence);
  return { certificate, fresh, expiresAt: endOf(certificate, fresh, evidence, policy), judged: [first, second] };
}

async function fetchFresh(
  socket: TLSSocket,
  { now }: AttestationPolicy,
  { host, signal }: Pick<Inquiry, 'host' | 'signal'>,
): Promise<JudgedEvidence> {
  const clientNonce = randomBytes(CLIENT_NONCE_BYTES);
  const nonce = connectionNonce(clientNonce, socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, NO_CONTEXT));
  const bytes = await fetchDocument(socket, { host, clientNonce, signal });
  return { kind: 'fresh_document', bytes, sha256: sha256Of(bytes), at: now(), live: true, nonce };
}

/** Reports call it too, for documents that they keep. */
export function verifyFresh(
  { bytes, at, live, nonce }: JudgedEvidence,
  policy: Omit<AttestationPolicy, 'now'>,
  { binding }: CertificateEvidence,
): EvidenceVerdict {
  const maxAgeSeconds = Math.min(MAX_FRESH_AGE_SECONDS, policy.maxAgeSeconds);
  return asRelayed(verifyDocument(bytes, { ...policy, at, live, maxAgeSeconds, nonce, expectedUserData: binding }));
}

/** The nonce is this connection's: another one says that the document was relayed. */
function asRelayed(verdict: EvidenceVerdict): EvidenceVerdict {
  const [failure] = verdict.failures;
  if (verdict.authentic || failure?.code !== 'nonce_mismatch') return verdict;
  const steps = verdict.steps.map((step) =>
    step.code === 'nonce_mismatch' ? { ...step, code: 'relayed' as const } : step,
  );
  return { ...verdict, steps, failures: [{ ...failure, code: 'relayed' }] };
}

function endOf(
  certificate: EvidenceVerdict,
  fresh: EvidenceVerdict,
  evidence: CertificateEvidence,
  { maxAgeSeconds }: AttestationPolicy,
): number {
  if (!certificate.expected || !fresh.expected) return 0;
  const tooOld = certificate.document.timestamp + maxAgeSeconds * 1000;
  return Math.min(evidence.expiresAt, certificate.chain.expiresAt, fresh.chain.expiresAt, tooOld);
}
