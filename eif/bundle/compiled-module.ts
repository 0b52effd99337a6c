// The module that takes the place of `enclave/compiled.ts`. It stays a file of its own next to the bundle, so that the
// bundle is the same in every image and the ceremony can be read from any of them.

import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { type Ceremony, ceremonyBlock, parseCeremony } from '../../ceremony/definition.ts';
import { hostnameSchema } from '../../signer/api/egress.ts';

export const COMPILED_FILE = 'compiled.mjs';

export const CONFIGURATION_PATH = '/etc/strongroom/config.yaml';

export interface Compiled {
  readonly ceremony: Ceremony;
  readonly configuration: 'baked' | 'fetched';
  /** PEM of those that alone vouch for a host, by its name. */
  readonly authorities: HostAuthorities;
}

export type HostAuthorities = ReadonlyMap<string, readonly string[]>;

const HEAD = `// What this image has compiled in (enclave/compiled.ts), written by \`strongroom eif build\`.
export const CONFIGURATION_PATH = ${JSON.stringify(CONFIGURATION_PATH)};
export const COMPILED = `;
const TAIL = ';\n';

/** By names as the enclave looks them up: of any other, nothing would be true that is shown of the image. */
const authoritiesSchema = z.record(hostnameSchema, z.array(z.string().refine(isCertificate)).min(1));

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).toString() === pem;
  } catch {
    return false;
  }
}

export function writeCompiledModule({ ceremony, configuration, authorities }: Compiled): Buffer {
  const hosts = Object.fromEntries([...authorities].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  const compiled = { configuration, ceremony: ceremonyBlock(ceremony), authorities: hosts };
  return Buffer.from(`${HEAD}${JSON.stringify(compiled)}${TAIL}`);
}

export function readCompiledModule(bytes: Uint8Array): Compiled | undefined {
  const text = Buffer.from(bytes).toString('utf8');
  if (!text.startsWith(HEAD) || !text.endsWith(TAIL)) return undefined;
  try {
    const { configuration, ceremony, authorities } = JSON.parse(text.slice(HEAD.length, -TAIL.length));
    if (configuration !== 'baked' && configuration !== 'fetched') return undefined;
    const named = authoritiesSchema.parse(authorities);
    const compiled = { ceremony: parseCeremony(ceremony), configuration, authorities: new Map(Object.entries(named)) };
    return writeCompiledModule(compiled).equals(Buffer.from(bytes)) ? compiled : undefined;
  } catch {
    return undefined; // no JSON, no ceremony, or no authorities
  }
}
