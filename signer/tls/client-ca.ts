// `tls.client_ca`. A file with anything else than certificates of authorities is refused: each of them could vouch for
// every client that is known by its name.

import { createHash, X509Certificate } from 'node:crypto';

export interface ClientCa {
  readonly pem: Buffer;
  readonly digest: string;
  readonly notAfter: string;
}

export const MAX_CLIENT_CAS = 64;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** @throws Error that completes "tls.client_ca: PATH" to a sentence */
export function parseClientCa(pem: Buffer): ClientCa {
  const blocks = pem.toString('latin1').match(PEM_CERTIFICATE) ?? [];
  if (blocks.length === 0) throw new Error('does not hold a PEM certificate');
  if (blocks.length > MAX_CLIENT_CAS) throw new Error(`holds more than ${MAX_CLIENT_CAS} certificates`);
  const authorities = blocks.map(parsed);
  for (const [index, one] of authorities.entries()) {
    if (authorities.some((above) => one.checkIssued(above) && one.verify(above.publicKey))) continue;
    const remedy = 'add the authorities up to the root, or nobody under it is let in';
    throw new Error(`holds certificate ${index + 1} without the authority above it: ${remedy}`);
  }
  const ends = authorities.map(({ validTo }) => Date.parse(validTo));
  const digest = createHash('sha256').update(pem).digest('hex');
  return { pem, digest, notAfter: new Date(Math.min(...ends)).toISOString() };
}

function parsed(block: string, index: number): X509Certificate {
  const which = `certificate ${index + 1}`;
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(block);
  } catch {
    throw new Error(`holds something else than a certificate as ${which}`);
  }
  if (certificate.ca) return certificate;
  throw new Error(`holds as ${which} one that is no authority's: pin a client's own in tls.known_clients instead`);
}
