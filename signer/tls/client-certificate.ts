// The certificate that a client showed in its handshake: names, digests, and two questions that are answered for each
// request, because a connection outlives a validity and a reload. The handshake is trusted for one thing: that the
// client has the private key.

import { createHash, type X509Certificate } from 'node:crypto';

export interface ClientCertificate {
  /** RFC 4514, the most specific name first, as `openssl x509 -subject -nameopt RFC2253,-esc_msb` prints it. */
  readonly subject: string;
  readonly fingerprint: string;
  readonly spkiSha256: string | undefined;
  isValidNow(): boolean;
  /** Its chain led to a CA of `tls.client_ca` in the handshake, which is still in force and valid. */
  isTrusted(): boolean;
}

interface CertificateQuestions {
  readonly now: () => number;
  readonly isTrusted: () => boolean;
}

export function readClientCertificate(
  certificate: X509Certificate,
  { now, isTrusted }: CertificateQuestions,
): ClientCertificate {
  const [notBefore, notAfter] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  return {
    subject: subjectOf(certificate),
    fingerprint: sha256(certificate.raw),
    spkiSha256: spkiSha256(certificate),
    isValidNow: () => now() >= notBefore && now() <= notAfter,
    isTrusted,
  };
}

/** The values of the subject's common names, with the escapes of RFC 4514. */
export function commonNamesOf({ subject }: Pick<ClientCertificate, 'subject'>): readonly string[] {
  return subject.split(/(?<!\\)[,+]/).flatMap((part) => (part.startsWith('CN=') ? [part.slice('CN='.length)] : []));
}

/** Node has one name a line, the least specific first, each escaped already, line ends too. */
function subjectOf({ subject }: { readonly subject: string | undefined }): string {
  const names = (subject ?? '').split('\n').toReversed();
  return names.map((name) => name.split(' + ').toReversed().join('+')).join(',');
}

function spkiSha256({ publicKey }: X509Certificate): string | undefined {
  try {
    return sha256(publicKey.export({ type: 'spki', format: 'der' }));
  } catch {
    return undefined;
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
