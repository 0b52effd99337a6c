// docs/dependencies.md tells the truth: it names every package that is installed with the product, the file through
// which it enters, and what it weighs in the measured image.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../support/addon.ts';

const DOCUMENT = readFileSync(join(PROJECT_ROOT, 'docs/dependencies.md'), 'utf8');
const ROWS = [...DOCUMENT.matchAll(/^\| (\S+) \| .* \| (\S+) \| (\d+|–) \|$/gm)].map(
  ([, name = '', file = '', size]) => ({
    name,
    file,
    kilobytes: size === '–' ? 0 : Number(size),
  }),
);
/** A new version of a package may weigh a little more before somebody measures again. */
const TOLERANCE = 0.1;

const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'));
const bytes = new Map<string, number>();

beforeAll(async () => {
  const { metafile } = await build({
    absWorkingDir: PROJECT_ROOT,
    entryPoints: ['enclave/main.ts'],
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node26',
    conditions: [],
    outdir: join(PROJECT_ROOT, 'app'),
    loader: { '.node': 'copy' },
    external: ['pg-native'],
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'silent',
  });
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      const [, name = ''] = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+?)(?:-linux-x64-gnu)?\//.exec(file) ?? [];
      bytes.set(name, (bytes.get(name) ?? 0) + bytesInOutput);
    }
  }
});

it('names every package of package.json, in its order, and no other', () => {
  const names = [...Object.keys(dependencies), ...Object.keys(optionalDependencies)];
  expect(ROWS.map(({ name }) => name)).toEqual(names);
});

describe.each(ROWS)('$name', ({ name, file, kilobytes }) => {
  it('enters by the file that is named', () => {
    const short = name.replace(/^@dynoxide\//, '');
    expect(readFileSync(join(PROJECT_ROOT, file), 'utf8')).toContain(short);
  });

  it.skipIf(process.arch !== 'x64')('weighs in the image what is said', () => {
    const measured = (bytes.get(name) ?? 0) / 1000;
    expect(measured > 0).toBe(kilobytes > 0);
    expect(Math.abs(measured - kilobytes)).toBeLessThanOrEqual(Math.max(1, kilobytes * TOLERANCE));
  });
});
