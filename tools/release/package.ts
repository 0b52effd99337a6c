// The release as a Debian package (deb(5)), by dpkg-deb of the host, whose libraries are in it, too. Nothing is started
// by it. The libraries come along, so that it depends on nothing but what makes the user.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Architecture } from '../../eif/format/format.ts';
import { BuildError } from '../../eif/inputs.ts';
import { type ArchiveEntry, beneath, completed, DEFAULT_MODE, file } from './archive/entry.ts';
import type { Origin } from './origin.ts';
import {
  deploymentEntries,
  INSTALLED,
  LAUNCHER,
  type Parts,
  programEntries,
  runtimeEntries,
  SERVICE_UNIT,
} from './tree.ts';

export const DEBIAN_ARCHITECTURE: Readonly<Record<Architecture, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

const UNITS: readonly string[] = [
  SERVICE_UNIT,
  'parent-proxy/deploy/strongroom-parent-proxy.service',
  'parent-proxy/deploy/strongroom-enclave.service',
  'parent-proxy/deploy/strongroom-metadata.service',
];
const SCRIPTS: readonly string[] = ['postinst', 'prerm', 'postrm'];
/** deb-conffiles(5): a changed one is kept when the package is upgraded. */
const CONFFILES = {
  'etc/strongroom/enclave.env': { from: 'parent-proxy/deploy/enclave.env', mode: 0o644 },
  'etc/strongroom/metadata.nft': { from: 'parent-proxy/deploy/metadata.nft', mode: 0o644 },
  'etc/strongroom/strongroom.env': { from: 'tools/release/debian/strongroom.env', mode: 0o640 },
} as const;

/** What Debian’s users look for in the folder of a package’s documents. */
const READ_ELSEWHERE: readonly string[] = ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'deploy', 'docs'];

const EXECUTABLE = 0o755;
const KIBIBYTE = 1024;

export function writePackage(root: string, parts: Parts, architecture: Architecture, origin: Origin): Buffer {
  const entries = packageEntries(root, parts);
  const control = [
    file('control', controlText(entries, architecture, origin)),
    file('conffiles', Object.keys(CONFFILES).map(linesOfPaths).join('')),
    ...SCRIPTS.map((name) => file(name, readFileSync(join(root, 'tools/release/debian', name)), EXECUTABLE)),
  ];
  return pack([...entries, ...beneath('DEBIAN', control)], origin);
}

/** The same entries, dpkg and tar give the same bytes: owners, modes and times are ours, not those of the builder. */
function pack(entries: readonly ArchiveEntry[], { timeSeconds }: Origin): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-package-'));
  const [tree, packed] = [join(folder, 'tree'), join(folder, 'packed.deb')];
  try {
    layOut(tree, entries, timeSeconds);
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', tree, packed], {
      env: { PATH: process.env['PATH'], LC_ALL: 'C', SOURCE_DATE_EPOCH: String(timeSeconds) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return readFileSync(packed);
  } catch (error) {
    if (error instanceof BuildError) throw error;
    throw new BuildError('the package cannot be made: dpkg-deb packs it', [
      error instanceof Error ? error.message : '',
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** It decides on the bytes, too. */
export function dpkgVersion(): string {
  const said = execFileSync('dpkg-deb', ['--version'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
  });
  return /version (\S+)/.exec(said)?.[1] ?? 'unknown';
}

function layOut(tree: string, entries: readonly ArchiveEntry[], timeSeconds: number): void {
  const laid = [{ type: 'directory', path: '' } as const, ...completed(entries)];
  for (const entry of laid) {
    const path = join(tree, entry.path);
    if (entry.type === 'symlink') symlinkSync(entry.target, path);
    else {
      if (entry.type === 'directory') mkdirSync(path);
      else writeFileSync(path, entry.data);
      chmodSync(path, entry.mode ?? DEFAULT_MODE[entry.type]);
    }
  }
  // What is put into a folder changes its time.
  for (const { path } of laid) lutimesSync(join(tree, path), timeSeconds, timeSeconds);
}

function packageEntries(root: string, parts: Parts): ArchiveEntry[] {
  const tree = [...runtimeEntries(parts), ...programEntries(parts), ...deploymentEntries(root, parts.typed)];
  return [
    ...beneath(INSTALLED, tree),
    { type: 'symlink', path: 'usr/bin/strongroom', target: `/${INSTALLED}/${LAUNCHER}` },
    { type: 'symlink', path: 'usr/share/doc/strongroom/copyright', target: `/${INSTALLED}/NOTICE` },
    ...READ_ELSEWHERE.map(
      (name): ArchiveEntry => ({
        type: 'symlink',
        path: `usr/share/doc/strongroom/${name}`,
        target: `/${INSTALLED}/${name}`,
      }),
    ),
    // Where man(1) and the shells of Debian look.
    ...[...parts.typed.keys()].map(
      (path): ArchiveEntry => ({ type: 'symlink', path: `usr/${path}`, target: `/${INSTALLED}/${path}` }),
    ),
    ...UNITS.map((path) => file(`usr/lib/systemd/system/${nameOf(path)}`, readFileSync(join(root, path)))),
    ...Object.entries(CONFFILES).map(([path, { from, mode }]) => file(path, readFileSync(join(root, from)), mode)),
  ];
}

function controlText(entries: readonly ArchiveEntry[], architecture: Architecture, { version }: Origin): string {
  const bytes = entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.data.length : 0), 0);
  return `Package: strongroom
Version: ${version}
Architecture: ${DEBIAN_ARCHITECTURE[architecture]}
Maintainer: the strongroom project
Installed-Size: ${Math.ceil(bytes / KIBIBYTE)}
Depends: passwd
Suggests: nftables
Section: net
Priority: optional
Description: Remote signer for Ethereum validator keys
 Speaks the Web3Signer HTTP API, refuses to sign what is slashable, and runs as
 an ordinary service or as the parent proxy of an AWS Nitro Enclave.
`;
}

function linesOfPaths(path: string): string {
  return `/${path}\n`;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
