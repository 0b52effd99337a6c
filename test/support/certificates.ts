// TLS certificates for tests, made when they are needed with the openssl program. Test keys only.

import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { KeyObject, webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { X509CertificateGenerator } from '@peculiar/x509';

/** A self-signed certificate under `folder/name.{crt,key}`, for localhost and 127.0.0.1 unless others are named. */
export function makeCertificate(
  folder: string,
  name: string,
  names = 'DNS:localhost,IP:127.0.0.1',
): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', cert],
    ],
    { stdio: 'pipe' },
  );
  return { cert, key };
}

/** One that has expired, which openssl makes in its newest versions only. */
export async function makeExpiredCertificate(
  folder: string,
  name: string,
): Promise<{ readonly cert: string; readonly key: string; readonly notAfter: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const notAfter = new Date('2020-02-01T00:00:00.000Z');
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date('2020-01-01'),
    notAfter,
    signingAlgorithm: algorithm,
    keys,
  });
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  writeFileSync(cert, certificate.toString('pem'));
  writeFileSync(key, KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }));
  return { cert, key, notAfter: notAfter.toISOString() };
}
