// TLS certificates for tests, made when they are needed with the openssl program. Test keys only.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** A self-signed certificate for localhost and 127.0.0.1 under `folder/name.{crt,key}`. */
export function makeCertificate(folder: string, name: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', cert],
    ],
    { stdio: 'pipe' },
  );
  return { cert, key };
}
