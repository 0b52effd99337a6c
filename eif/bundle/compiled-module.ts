// The module that takes the place of `enclave/compiled.ts` in an image: its ceremony, and where its configuration comes
// from. It stays a file of its own beside the bundle, so that the bundle is the same in every image and the ceremony
// can be read from any of them. One ceremony has one text, and only that text is read.

import { type Ceremony, ceremonyBlock, parseCeremony } from '../../ceremony/definition.ts';

export const COMPILED_FILE = 'compiled.mjs';

/** `CONFIGURATION_PATH` of enclave/compiled.ts. */
export const CONFIGURATION_PATH = '/etc/strongroom/config.yaml';

export interface Compiled {
  readonly ceremony: Ceremony;
  readonly configuration: 'baked' | 'fetched';
}

const HEAD = `// What this image has compiled in (enclave/compiled.ts), written by \`strongroom eif build\`.
export const CONFIGURATION_PATH = ${JSON.stringify(CONFIGURATION_PATH)};
export const COMPILED = `;
const TAIL = ';\n';

export function writeCompiledModule({ ceremony, configuration }: Compiled): Buffer {
  return Buffer.from(`${HEAD}${JSON.stringify({ configuration, ceremony: ceremonyBlock(ceremony) })}${TAIL}`);
}

/** @returns undefined for any text but the one that `writeCompiledModule` writes */
export function readCompiledModule(bytes: Uint8Array): Compiled | undefined {
  const text = Buffer.from(bytes).toString('utf8');
  if (!text.startsWith(HEAD) || !text.endsWith(TAIL)) return undefined;
  try {
    const { configuration, ceremony } = JSON.parse(text.slice(HEAD.length, -TAIL.length));
    if (configuration !== 'baked' && configuration !== 'fetched') return undefined;
    const compiled = { ceremony: parseCeremony(ceremony), configuration } as const;
    return writeCompiledModule(compiled).equals(Buffer.from(bytes)) ? compiled : undefined;
  } catch {
    return undefined; // no JSON, or no ceremony
  }
}
