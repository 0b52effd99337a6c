// A release made for tests, by the program that makes releases, from a copy of the project; and its image, unpacked as
// container engines do.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OtherUser } from '../support/nobody.ts';

/** Of a release of tests; nothing in git has it. */
export const COMMIT = '0123456789abcdef0123456789abcdef01234567';
export const TIME_SECONDS = 1_790_000_000;

export interface MakeOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: OtherUser;
  readonly umask?: string;
}

/** @returns the names of its files */
export function makeRelease(
  project: string,
  to: string,
  { env, user, umask = '022' }: MakeOptions = {},
): readonly string[] {
  const shell = `umask ${umask}; exec "$@"`;
  const program = [join(project, 'bin/pinned-node'), join(project, 'release/main.ts')];
  const args = ['-c', shell, 'sh', ...program, '--directory', to, '--commit', COMMIT];
  const [command, given] = user?.command('sh', args) ?? ['sh', args];
  const run = spawnSync(command, given, {
    encoding: 'utf8',
    cwd: '/',
    env: { PATH: process.env['PATH'], SOURCE_DATE_EPOCH: String(TIME_SECONDS), ...env },
  });
  if (run.status !== 0) throw new Error(`exit ${run.status}: ${run.stderr}`);
  return readdirSync(to).sort();
}

export interface UnpackedImage {
  readonly root: string;
  readonly manifest: { readonly layers: readonly Blob[]; readonly config: Blob };
  readonly configuration: ImageConfiguration;
  /** Of the layers, compressed. */
  readonly layerFiles: readonly string[];
}

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface ImageConfiguration {
  readonly architecture: string;
  readonly created: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
    readonly StopSignal: string;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

export function unpackImage(archive: string, to: string): UnpackedImage {
  const [layout, root] = [join(to, 'layout'), join(to, 'root')];
  for (const path of [layout, root]) mkdirSync(path, { recursive: true });
  execFileSync('tar', ['-xf', archive, '-C', layout]);
  const blob = (digest: string): string => join(layout, 'blobs', digest.replace(':', '/'));
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
  const manifest = read(blob(read(join(layout, 'index.json')).manifests[0].digest));
  const layerFiles = (manifest.layers as Blob[]).map(({ digest }) => blob(digest));
  for (const layer of layerFiles) execFileSync('tar', ['-xpzf', layer, '-C', root, '--numeric-owner']);
  return { root, manifest, configuration: read(blob(manifest.config.digest)), layerFiles };
}
