// A certificate authority for the stand-ins, made anew for each image that trusts it, with the openssl program. TEST
// keys only.

import { join } from 'node:path';
import { run } from '../tools.ts';

export interface Authority {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

export function makeAuthority(folder: string, hostnames: readonly string[]): Authority {
  const at = (name: string): string => join(folder, name);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  run('openssl', [
    ...['req', '-x509', ...newKey, '-subj', '/CN=strongroom TEST authority', '-keyout', at('authority.key')],
    ...['-addext', 'keyUsage=critical,keyCertSign', '-out', at('authority.crt')],
  ]);
  const names = hostnames.map((hostname) => `DNS:${hostname}`).join(',');
  run('openssl', [
    ...['req', '-x509', ...newKey, '-subj', '/CN=strongroom TEST stand-ins', '-addext', `subjectAltName=${names}`],
    ...['-addext', 'basicConstraints=critical,CA:FALSE', '-CA', at('authority.crt'), '-CAkey', at('authority.key')],
    ...['-keyout', at('server.key'), '-out', at('server.crt')],
  ]);
  return { authority: at('authority.crt'), certificate: at('server.crt'), key: at('server.key') };
}
