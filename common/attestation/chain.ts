// The certificate chain of an attestation document (specification/evidence.md#chain). It ends in the one pinned root.

import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import { bounded } from '../command-line/text.ts';
import { type Certificate, certificateKey, isSignedWith, readCertificate } from './certificate.ts';
import type { DocumentProvider } from './contract.ts';
import type { AttestationDocument } from './document.ts';
import { demand } from './failure.ts';

const MAX_NAME_CHARACTERS = 120;

export interface ChainCertificate {
  /** The common name, or all of the subject. */
  readonly name: string;
  readonly sha256: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

export interface Chain {
  readonly certificates: readonly ChainCertificate[];
  readonly leafKey: KeyObject;
  readonly expiresAt: number;
}

interface Link extends ChainCertificate {
  readonly certificate: Certificate;
}

export interface Moment {
  readonly at: number;
  readonly toleranceMs: number;
}

export function checkChain(document: AttestationDocument, provider: DocumentProvider, moment: Moment): Chain {
  const links = readLinks(document);
  const root = links.at(-1);
  demand(root?.sha256 === provider.rootSha256, 'untrusted_root', `${root?.name} (SHA-256 ${root?.sha256})`);
  const keys = links.map((link, depth) => {
    checkValidity(link, moment);
    return checkUse(link, depth);
  });
  const [leafKey] = keys;
  demand(leafKey !== undefined, 'broken_chain', 'there is no certificate');
  links.forEach((link, depth) => {
    const above = depth + 1 < links.length ? depth + 1 : depth;
    checkIssuer(link, links[above] ?? link, keys[above] ?? leafKey);
  });
  return {
    certificates: links.map(describe),
    leafKey,
    expiresAt: Math.min(...links.map(({ notAfter }) => notAfter)),
  };
}

/** The leaf, then the bundle from its end, for AWS writes the root first. @throws EvidenceError */
export function readLinks({ certificate, cabundle }: AttestationDocument): readonly Link[] {
  return [certificate, ...cabundle.toReversed()].map(readLink);
}

function readLink(der: Buffer): Link {
  const certificate = readCertificate(der);
  const { notBefore, notAfter } = certificate;
  return {
    name: bounded(nameOf(der), MAX_NAME_CHARACTERS),
    sha256: createHash('sha256').update(der).digest('hex'),
    ...{ notBefore, notAfter, certificate },
  };
}

/** For people only. */
function nameOf(der: Buffer): string {
  try {
    const subject: string | undefined = new X509Certificate(der).subject; // none for an empty name
    return /(?:^|\n)CN=(.*)/.exec(subject ?? '')?.[1] ?? subject ?? NAMELESS;
  } catch {
    return NAMELESS;
  }
}

const NAMELESS = 'a certificate without a name';

function checkValidity({ name, notBefore, notAfter }: Link, { at, toleranceMs }: Moment): void {
  demand(at + toleranceMs >= notBefore, 'not_yet_valid', `${name} is valid from ${iso(notBefore)}`);
  demand(at <= notAfter, 'expired', `${name} was valid until ${iso(notAfter)}`);
}

function checkUse({ name, certificate }: Link, depth: number): KeyObject {
  const { basicConstraints, keyUsage, isCriticalUnknown } = certificate;
  demand(!isCriticalUnknown, 'unknown_critical_extension', name);
  const key = certificateKey(certificate, 'P-384');
  demand(key !== undefined, 'certificate_misuse', `${name}: not a key of P-384 and a signature of ECDSA and SHA-384`);
  if (depth === 0) {
    demand(basicConstraints?.ca !== true, 'certificate_misuse', `${name}: a CA certificate signs the document`);
    demand(keyUsage?.digitalSignature === true, 'certificate_misuse', `${name}: not for digital signatures`);
    return key;
  }
  demand(basicConstraints?.ca === true, 'certificate_misuse', `${name}: not of a CA`);
  demand(keyUsage?.keyCertSign === true, 'certificate_misuse', `${name}: not for signing certificates`);
  // RFC 5280 §4.2.1.9: the leaf below them is not counted.
  const allowed = basicConstraints.pathLength ?? Number.POSITIVE_INFINITY;
  demand(depth - 1 <= allowed, 'certificate_misuse', `${name}: ${depth - 1} authorities below it, ${allowed} allowed`);
  return key;
}

/** RFC 5280 §6.1.3: names chain as bytes, key identifiers only where both certificates have one. */
function checkIssuer({ name, certificate }: Link, issuer: Link, key: KeyObject): void {
  const { authorityKeyIdentifier: named } = certificate;
  const { subjectKeyIdentifier: own, subject } = issuer.certificate;
  const isNamed = named === undefined || own === undefined || named.equals(own);
  const isIssued = isNamed && certificate.issuer.equals(subject) && isSignedWith(certificate, key, 'P-384');
  demand(isIssued, 'broken_chain', `${name} was not issued by ${issuer.name}`);
}

function describe({ name, sha256, notBefore, notAfter }: Link): ChainCertificate {
  return { name, sha256, notBefore, notAfter };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
