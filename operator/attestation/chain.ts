// The certificate chain of an attestation document, leaf first: it ends in the one pinned root, never in whatever the
// bundle begins with; every certificate is inside its validity at the chosen time, issued by the next one, and used for
// what it may be (RFC 5280 §6.1; specification/evidence.md#checks, chain).

import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import { bounded } from '../../command-line/text.ts';
import { type CertificateExtensions, readExtensions } from './certificate-extensions.ts';
import type { AttestationDocument } from './document.ts';
import { demand, EvidenceError } from './failure.ts';
import type { DocumentProvider } from './provider.ts';

const MAX_NAME_CHARACTERS = 120;

/** One certificate of a chain; nothing of it is trusted before the chain is. */
export interface ChainCertificate {
  /** The common name, or all of the subject; fit for a terminal. */
  readonly name: string;
  /** SHA-256 of the DER, hex. */
  readonly sha256: string;
  /** Milliseconds since the epoch, both inside the validity. */
  readonly notBefore: number;
  readonly notAfter: number;
}

export interface Chain {
  readonly certificates: readonly ChainCertificate[];
  readonly leafKey: KeyObject;
  /** When the first certificate of the chain ends, milliseconds. */
  readonly expiresAt: number;
}

interface Link extends ChainCertificate {
  readonly x509: X509Certificate;
  readonly key: KeyObject;
  readonly extensions: CertificateExtensions;
}

/** What the document says about its chain, for a report; empty when it cannot be read. */
export function describeChain(document: AttestationDocument): readonly ChainCertificate[] {
  try {
    return readLinks(document).map(describe);
  } catch (error) {
    if (error instanceof EvidenceError) return [];
    throw error;
  }
}

/** The moment at which certificates have to be valid. */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** How much later than that a certificate may begin. None may end earlier. */
  readonly toleranceMs: number;
}

/** @throws EvidenceError */
export function checkChain(document: AttestationDocument, provider: DocumentProvider, moment: Moment): Chain {
  const links = readLinks(document);
  const [leaf] = links;
  const root = links.at(-1);
  demand(leaf !== undefined && root !== undefined, 'broken_chain', 'there is no certificate');
  demand(root.sha256 === provider.rootSha256, 'untrusted_root', `${root.name} (SHA-256 ${root.sha256})`);
  links.forEach((link, depth) => {
    checkValidity(link, moment);
    checkUse(link, depth);
  });
  // Only now: every key is known to be of P-384.
  links.forEach((link, depth) => {
    checkIssuer(link, links[depth + 1] ?? link);
  });
  return {
    certificates: links.map(describe),
    leafKey: leaf.key,
    expiresAt: Math.min(...links.map(({ notAfter }) => notAfter)),
  };
}

/** The leaf, then the bundle from its end: AWS writes the root first. */
function readLinks({ certificate, cabundle }: AttestationDocument): readonly Link[] {
  return [certificate, ...cabundle.toReversed()].map(readLink);
}

function readLink(der: Buffer): Link {
  const { x509, key } = parseCertificate(der);
  const name = /(?:^|\n)CN=(.*)/.exec(x509.subject)?.[1] ?? x509.subject;
  const [notBefore, notAfter] = [x509.validFromDate.getTime(), x509.validToDate.getTime()];
  demand(Number.isFinite(notBefore + notAfter), 'malformed_certificate', 'its validity cannot be read');
  return {
    name: bounded(name, MAX_NAME_CHARACTERS),
    sha256: createHash('sha256').update(der).digest('hex'),
    notBefore,
    notAfter,
    x509,
    key,
    extensions: readExtensions(der),
  };
}

/** @throws EvidenceError malformed_certificate: also for PEM, and for DER with bytes after it */
export function parseCertificate(der: Uint8Array): { readonly x509: X509Certificate; readonly key: KeyObject } {
  try {
    const x509 = new X509Certificate(der);
    if (x509.raw.equals(der)) return { x509, key: x509.publicKey };
  } catch {
    // Refused below: what node:crypto says about it helps nobody.
  }
  throw new EvidenceError({
    code: 'malformed_certificate',
    detail: 'not the DER of one X.509 certificate with a usable key',
  });
}

function checkValidity({ name, notBefore, notAfter }: Link, { at, toleranceMs }: Moment): void {
  demand(at + toleranceMs >= notBefore, 'not_yet_valid', `${name} is valid from ${iso(notBefore)}`);
  demand(at <= notAfter, 'expired', `${name} was valid until ${iso(notAfter)}`);
}

/** @param depth 0 is the leaf */
function checkUse({ name, key, x509, extensions }: Link, depth: number): void {
  const { basicConstraints, keyUsage, unhandledCritical } = extensions;
  demand(unhandledCritical.length === 0, 'unknown_critical_extension', `${name}: ${unhandledCritical.join(', ')}`);
  demand(
    key.asymmetricKeyDetails?.namedCurve === 'secp384r1',
    'certificate_misuse',
    `${name}: its key is not of P-384`,
  );
  const algorithm = x509.signatureAlgorithm;
  demand(algorithm === 'ecdsa-with-SHA384', 'certificate_misuse', `${name}: it is not signed with ECDSA and SHA-384`);
  if (depth === 0) {
    demand(basicConstraints?.ca !== true, 'certificate_misuse', `${name}: a CA certificate signs the document`);
    demand(keyUsage?.digitalSignature === true, 'certificate_misuse', `${name}: not for digital signatures`);
    return;
  }
  demand(basicConstraints?.ca === true, 'certificate_misuse', `${name}: not of a CA`);
  demand(keyUsage?.keyCertSign === true, 'certificate_misuse', `${name}: not for signing certificates`);
  // RFC 5280 §4.2.1.9: the leaf below them is not counted.
  const allowed = basicConstraints.pathLength ?? Number.POSITIVE_INFINITY;
  demand(depth - 1 <= allowed, 'certificate_misuse', `${name}: ${depth - 1} authorities below it, ${allowed} allowed`);
}

function checkIssuer(link: Link, issuer: Link): void {
  const issued = link.x509.checkIssued(issuer.x509) && link.x509.verify(issuer.key);
  demand(issued, 'broken_chain', `${link.name} was not issued by ${issuer.name}`);
}

function describe({ name, sha256, notBefore, notAfter }: Link): ChainCertificate {
  return { name, sha256, notBefore, notAfter };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
