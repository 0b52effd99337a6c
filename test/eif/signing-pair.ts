// A key and certificate to sign test images with, made with the openssl program. A test key.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SigningPair {
  readonly keyPem: Buffer;
  readonly certificatePem: Buffer;
}

export function signingPair({ authority = true }: { readonly authority?: boolean } = {}): SigningPair {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-signing-'));
  try {
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp384r1', '-nodes', '-days', '2'],
        ...['-addext', `basicConstraints=critical,CA:${authority ? 'TRUE' : 'FALSE'}`],
        ...['-subj', '/CN=strongroom test image signer', '-keyout', key, '-out', certificate],
      ],
      { stdio: 'pipe' },
    );
    return { keyPem: readFileSync(key), certificatePem: readFileSync(certificate) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
