// Holds what an image takes from packages against the lockfile: each file against the package's tarball, whose SHA-512
// the lockfile states and whose bytes npm keeps in its cache. Trusted: the lockfile, which the commit names. Refused: a
// file that is not the tarball's. A tarball that the cache lacks leaves its package unverified, which the record says.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { BuildError, type Input, inputOf, readImageInput } from './inputs.ts';
import { sha256Hex } from './measure.ts';

/** What compiles and bundles an image, and the sources that the addon is compiled from: every file of them. */
const WHOLE = ['esbuild', '@esbuild/linux-x64', '@esbuild/linux-arm64', 'c-kzg', 'node-api-headers'];
/** A tarball unpacked: the one of Node.js has 130 MB. */
const MAX_TARBALL_BYTES = 512 * 1024 * 1024;
const BLOCK_BYTES = 512;

const lockfileSchema = z.object({
  packages: z.record(z.string(), z.object({ integrity: z.string().optional() })),
});

export interface HeldPackages {
  /** Folders of packages whose tarball npm's cache does not have. */
  readonly unverified: readonly string[];
}

/**
 * @param root the project's folder
 * @param inputs of the bundle; those of no package are passed over
 * @throws BuildError when a file is not that of the package's tarball
 */
export function holdPackages(root: string, inputs: readonly Input[], cache = cacheOfNpm(root)): HeldPackages {
  const lockfile = lockfileSchema.parse(
    JSON.parse(readImageInput(join(root, 'package-lock.json'), 'the lockfile').toString()),
  );
  const folders = Object.keys(lockfile.packages).filter((folder) => folder !== '');
  const asked = new Map<string, Input[]>();
  for (const input of inputs.filter(({ path }) => path.startsWith('node_modules/'))) {
    const folder = folders.filter((one) => input.path.startsWith(`${one}/`)).sort((a, b) => b.length - a.length)[0];
    if (folder === undefined) throw new BuildError(`${input.path} is of no package of the lockfile`, [REMEDY]);
    asked.set(folder, [...(asked.get(folder) ?? []), input]);
  }
  for (const folder of WHOLE.map((name) => `node_modules/${name}`)) {
    if (folders.includes(folder) && existsSync(join(root, folder))) asked.set(folder, asked.get(folder) ?? []);
  }
  const unverified: string[] = [];
  const altered: string[] = [];
  for (const [folder, files] of asked) {
    const tarball = tarballOf(cache, lockfile.packages[folder]?.integrity);
    if (tarball === undefined) {
      unverified.push(folder);
      continue;
    }
    const published = filesIn(tarball);
    const all = WHOLE.includes(folder.slice('node_modules/'.length)) ? installed(root, folder, published) : files;
    altered.push(
      ...all.filter(({ path, sha256 }) => published.get(path.slice(folder.length + 1)) !== sha256).map(pathOf),
    );
  }
  if (altered.length > 0)
    throw new BuildError('packages are not those that the lockfile names: files of theirs were altered', [
      ...altered.sort().slice(0, MAX_NAMED),
      REMEDY,
    ]);
  return { unverified: unverified.sort() };
}

const MAX_NAMED = 20;
const REMEDY = 'install the packages again: rm -rf node_modules && npm ci';

function pathOf({ path }: Input): string {
  return path;
}

/** Every file that was published, as it is here. */
function installed(root: string, folder: string, published: ReadonlyMap<string, string>): readonly Input[] {
  return [...published.keys()].map((name) => {
    const path = `${folder}/${name}`;
    return existsSync(join(root, path)) ? inputOf(path, readFileSync(join(root, path))) : { path, sha256: '', size: 0 };
  });
}

/** Where the npm that installed the packages put their tarballs. */
export function cacheOfNpm(root: string): string {
  try {
    return execFileSync('npm', ['config', 'get', 'cache'], { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    // The system has no npm: that of the checkout (tools/checkout/npm) has npm's default.
    return process.env['npm_config_cache'] ?? join(homedir(), '.npm');
  }
}

/** @returns undefined when the cache does not have it @throws BuildError for a lockfile without the package's digest */
function tarballOf(cache: string, integrity: string | undefined): Buffer | undefined {
  const [, digest] = /(?:^| )sha512-([A-Za-z0-9+/]+=*)(?: |$)/.exec(integrity ?? '') ?? [];
  if (digest === undefined) throw new BuildError('the lockfile has a package without its SHA-512', [REMEDY]);
  const hex = Buffer.from(digest, 'base64').toString('hex');
  const file = join(cache, '_cacache/content-v2/sha512', hex.slice(0, 2), hex.slice(2, 4), hex.slice(4));
  if (!existsSync(file)) return undefined;
  const bytes = readFileSync(file);
  // What lies in the cache is as good as its digest.
  return createHash('sha512').update(bytes).digest('hex') === hex ? bytes : undefined;
}

/** By their paths in the package's folder: SHA-256, hex. POSIX.1-2017, pax: headers of 512 bytes, then the content. */
function filesIn(tarball: Buffer): ReadonlyMap<string, string> {
  const tar = gunzipSync(tarball, { maxOutputLength: MAX_TARBALL_BYTES });
  const files = new Map<string, string>();
  let longName: string | undefined;
  for (let at = 0; at + BLOCK_BYTES <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK_BYTES);
    const text = (from: number, to: number): string => header.toString('utf8', from, to).replace(/\0.*$/s, '');
    const size = Number.parseInt(text(124, 136), 8) || 0;
    const content = tar.subarray(at + BLOCK_BYTES, at + BLOCK_BYTES + size);
    const kind = text(156, 157);
    if (kind === 'x') longName = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(content.toString('utf8'))?.[1];
    else if (kind === 'L') longName = content.toString('utf8').replace(/\0.*$/s, '');
    else {
      const prefix = text(345, 500);
      const name = longName ?? (prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`);
      // npm leaves out the first folder, whatever its name is.
      const path = name.replace(/^(?:\.\/)?[^/]+\//, '');
      if ((kind === '' || kind === '0') && !/(?:^|\/)$/.test(path)) files.set(path, sha256Hex(content));
      longName = undefined;
    }
    at += BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
  return files;
}
