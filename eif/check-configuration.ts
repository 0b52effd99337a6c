// Runs the signer's own check over the configuration that is to be baked in. It also shows that the bundle is whole:
// every module that a start needs loads.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BundleFile, MAIN_FILE } from './bundle/bundle.ts';
import { COMPILED_FILE } from './bundle/compiled-module.ts';
import { BuildError } from './inputs.ts';

const TIME_LIMIT_MS = 120_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

interface CheckedBundle {
  readonly node: string;
  readonly bundle: readonly BundleFile[];
  readonly compiled: Buffer;
}

export interface NamedConfiguration {
  readonly name: string;
  readonly bytes: Buffer;
}

/** @param configuration undefined when it is fetched: then only that the bundle starts @throws BuildError */
export async function checkConfiguration(
  { node, bundle, compiled }: CheckedBundle,
  configuration: NamedConfiguration | undefined,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'strongroom-image-'));
  try {
    const app = join(folder, 'app');
    await mkdir(app);
    for (const { name, data } of [...bundle, { name: COMPILED_FILE, data: compiled }])
      await writeFile(join(app, name), data);
    if (configuration !== undefined) await writeFile(join(folder, configuration.name), configuration.bytes);
    const asked = configuration === undefined ? [] : [configuration.name];
    const problem = await run(node, [join(app, MAIN_FILE), ...asked], folder);
    if (problem === undefined) return;
    const what =
      configuration === undefined
        ? 'the bundle does not start'
        : `the signer refuses the configuration ${configuration.name}`;
    throw new BuildError(
      what,
      problem.split('\n').filter((line) => line !== ''),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns what the program said when it did not end well */
function run(program: string, argv: readonly string[], cwd: string): Promise<string | undefined> {
  // No environment: in the enclave the signer takes nothing from it either.
  const options = { cwd, env: {}, timeout: TIME_LIMIT_MS, maxBuffer: MAX_OUTPUT_BYTES, killSignal: 'SIGKILL' } as const;
  return new Promise((settle) => {
    execFile(program, argv, options, (error, _stdout, stderr) => {
      settle(error === null ? undefined : stderr || error.message);
    });
  });
}
