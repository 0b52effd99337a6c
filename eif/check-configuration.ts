// Runs the bundle itself, on this host, over the configuration that is to be baked in: an image whose signer would refuse its
// configuration is not built. It also shows that the bundle is whole: every module of it that a start needs is found and loads.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BundleFile, MAIN_FILE } from './bundle.ts';
import { COMPILED_FILE } from './compiled-module.ts';
import { BuildError } from './inputs.ts';

const TIME_LIMIT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

export interface CheckedBundle {
  readonly node: string;
  readonly bundle: readonly BundleFile[];
  readonly compiled: Buffer;
}

/**
 * @param file the configuration; undefined when it is fetched: then only that the bundle starts
 * @throws BuildError with the signer's own violations
 */
export async function checkConfiguration(
  { node, bundle, compiled }: CheckedBundle,
  file: string | undefined,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'strongroom-image-'));
  try {
    for (const { name, data } of [...bundle, { name: COMPILED_FILE, data: compiled }])
      await writeFile(join(folder, name), data);
    const asked = file === undefined ? ['--help'] : ['--check', '-c', file];
    const problem = await run(node, [join(folder, MAIN_FILE), 'server', ...asked]);
    if (problem === undefined) return;
    const what = file === undefined ? 'the bundle does not start' : `the signer refuses the configuration ${file}`;
    throw new BuildError(
      what,
      problem.split('\n').filter((line) => line !== ''),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns what the program said when it did not end well */
function run(program: string, argv: readonly string[]): Promise<string | undefined> {
  // No environment: in the enclave the signer takes nothing from it either.
  const options = { env: {}, timeout: TIME_LIMIT_MS, maxBuffer: MAX_OUTPUT_BYTES, killSignal: 'SIGKILL' } as const;
  return new Promise((settle) => {
    execFile(program, argv, options, (error, _stdout, stderr) => {
      settle(error === null ? undefined : stderr || error.message);
    });
  });
}
