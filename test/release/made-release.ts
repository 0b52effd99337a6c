// A release made for tests, by the program that makes releases, from a copy of the project; and its image, unpacked as
// container engines do.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VERSION } from '../../signer/api/version.ts';
import { KERNEL, sha256 } from '../eif/image-program.ts';
import { compiledBefore, copyProject } from '../eif/project-copy.ts';
import type { OtherUser } from '../support/nobody.ts';
import { IS_WHOLE } from '../support/scale.ts';

/** The commit of a test's release; git has none of this name. */
export const COMMIT = '0123456789abcdef0123456789abcdef01234567';
export const TIME_SECONDS = 1_790_000_000;

export interface MadeRelease {
  readonly folder: string;
  readonly project: string;
  readonly kernel: string;
  readonly release: string;
  readonly tree: string;
  readonly image: UnpackedImage;
}

export interface MakeOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: OtherUser;
  readonly umask?: string;
}

export function makeForTests(): MadeRelease {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-release-'));
  chmodSync(folder, 0o755);
  const [project, release, unpacked] = ['project', 'release', 'unpacked'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  copyProject(project);
  const kernel = writeKernel(join(folder, 'kernel'));
  // At the small size test/eif compiles.
  makeRelease(project, release, kernel, { env: IS_WHOLE ? {} : compiledBefore(join(project, 'build')) });
  const name = `strongroom-${VERSION}-linux-x86_64`;
  mkdirSync(unpacked);
  execFileSync('tar', ['-xzf', join(release, `${name}.tar.gz`), '-C', unpacked]);
  const image = unpackImage(join(release, `${name}.oci.tar`), join(folder, 'image'));
  return { folder, project, kernel, release, tree: join(unpacked, name), image };
}

/** The files of the package, unpacked once. */
export function packageTree({ folder, release }: MadeRelease): string {
  const to = join(folder, 'package');
  if (!existsSync(to)) execFileSync('dpkg-deb', ['--extract', join(release, `strongroom_${VERSION}_amd64.deb`), to]);
  return to;
}

export function filesIn(path: string): string[] {
  return execFileSync('find', [path, '!', '-type', 'd', '-printf', '%P\n'], { encoding: 'utf8' }).trimEnd().split('\n');
}

/** A stand-in for a kernel, as test/eif has it: nothing boots it. @returns its image.yaml */
export function writeKernel(folder: string): string {
  mkdirSync(folder);
  writeFileSync(join(folder, 'bzImage'), KERNEL);
  writeFileSync(join(folder, 'image.yaml'), `kernel: { path: bzImage, sha256: ${sha256(KERNEL)} }\n`);
  return join(folder, 'image.yaml');
}

/** @param image an image.yaml, or none @returns the names of its files */
export function makeRelease(
  project: string,
  to: string,
  image: string | undefined,
  { env, user, umask = '022' }: MakeOptions = {},
): readonly string[] {
  const shell = `umask ${umask}; exec "$@"`;
  const program = [join(project, 'bin/pinned-node'), join(project, 'tools/release/main.ts')];
  const measured = image === undefined ? [] : ['--image', image];
  const args = ['-c', shell, 'sh', ...program, '--directory', to, '--commit', COMMIT, ...measured];
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
  /** The files of the layers, compressed. */
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
