// An authority of one run, with a certificate for servers on this host, by name and by address, and one for the client:
// both peers get the same, because Dirk knows its clients by certificate alone. Test keys only.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Certificates {
  readonly authority: string;
  readonly server: { readonly cert: string; readonly key: string };
  readonly client: { readonly cert: string; readonly key: string };
}

export const CLIENT_NAME = 'bench-client';

export function makeCertificates(folder: string): Certificates {
  const own = ['req', '-x509', ...newKey(folder, 'authority'), '-days', '2', '-subj', '/CN=bench-authority'];
  openssl([...own, '-out', join(folder, 'authority.crt')]);
  return {
    authority: join(folder, 'authority.crt'),
    server: issue(folder, 'localhost'),
    client: issue(folder, CLIENT_NAME),
  };
}

function issue(folder: string, name: string): { readonly cert: string; readonly key: string } {
  const at = (end: string): string => join(folder, `${name}.${end}`);
  writeFileSync(
    at('ext'),
    `subjectAltName=DNS:${name},IP:127.0.0.1\nbasicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n`,
  );
  openssl(['req', ...newKey(folder, name), '-subj', `/CN=${name}`, '-out', at('csr')]);
  const authority = ['-CA', join(folder, 'authority.crt'), '-CAkey', join(folder, 'authority.key'), '-CAcreateserial'];
  openssl(['x509', '-req', '-in', at('csr'), ...authority, '-days', '2', '-extfile', at('ext'), '-out', at('crt')]);
  return { cert: at('crt'), key: at('key') };
}

function newKey(folder: string, name: string): string[] {
  return [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    join(folder, `${name}.key`),
  ];
}

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}
