// Self-signed certificates that an enclave never makes: with other extensions than evidence, or signed by somebody
// else. Test keys only.

import { Extension, X509CertificateGenerator } from '@peculiar/x509';
import type { CertificateKey } from '../../../enclave/ratls/identity.ts';
import 'reflect-metadata';

export interface DeviantCertificateOptions {
  readonly key: CertificateKey;
  /** Default: the certificate's own. */
  readonly signingKey?: CertificateKey;
  readonly notBefore: number;
  readonly notAfter: number;
  /** OID and content, none critical. */
  readonly extensions: readonly (readonly [oid: string, value: Uint8Array])[];
}

export async function createDeviantCertificate(options: DeviantCertificateOptions): Promise<Buffer> {
  const { key, signingKey = key, notBefore, notAfter, extensions } = options;
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=strongroom',
    issuer: 'CN=strongroom',
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    publicKey: key.pair.publicKey,
    signingKey: signingKey.pair.privateKey,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: extensions.map(([oid, value]) => new Extension(oid, false, new Uint8Array(value))),
  });
  return Buffer.from(certificate.rawData);
}
