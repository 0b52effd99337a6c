// A test program and all that it imports as one module, so that a guest needs no sources and no packages. It lies two
// folders deep in the guest's /test, which is where it finds what the sources look for two folders up: the native
// addon.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { CpioEntry } from '../../eif/format/cpio.ts';
import { ADDON_PATH } from '../../signer/native/load.ts';
import { PROJECT_ROOT } from '../support/addon.ts';

export const PROGRAMS_FOLDER = 'test/programs/bundle';
const ADDON_IN_GUEST = 'test/build/native/strongroom.node';

/** What CommonJS packages expect around them. */
const COMMONJS_NAMES = `import { createRequire as commonjsRequire } from 'node:module';
const require = commonjsRequire(import.meta.url);
const { filename: __filename, dirname: __dirname } = import.meta;`;

/**
 * @param programs name in the guest → source, from the project's folder
 * @returns `PROGRAMS_FOLDER/<name>.js` each, and the addon
 */
export async function programEntries(programs: Readonly<Record<string, string>>): Promise<CpioEntry[]> {
  const { outputFiles } = await build({
    absWorkingDir: PROJECT_ROOT,
    entryPoints: Object.entries(programs).map(([out, source]) => ({ in: source, out })),
    outdir: join(PROJECT_ROOT, 'build/guest/programs'),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node26',
    banner: { js: COMMONJS_NAMES },
    external: ['pg-native'],
    loader: { '.node': 'empty' }, // of the combiner, which no guest runs
    logLevel: 'error',
  });
  return [
    ...outputFiles.map(
      ({ path, contents }): CpioEntry => ({
        type: 'file',
        path: `${PROGRAMS_FOLDER}/${path.slice(path.lastIndexOf('/') + 1)}`,
        data: contents,
      }),
    ),
    // What lies there is a module whatever package.json is above it.
    { type: 'file', path: `${PROGRAMS_FOLDER}/package.json`, data: Buffer.from('{"type":"module"}') },
    { type: 'file', path: ADDON_IN_GUEST, data: readFileSync(ADDON_PATH), mode: 0o755 },
  ];
}
