// The release as a Debian package (deb(5)), written without Debian's tools. Nothing is started by it. The libraries
// come along, so that it depends on nothing but what makes the user.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Architecture } from '../../eif/format/format.ts';
import { BuildError } from '../../eif/inputs.ts';
import { type ArchiveEntry, beneath, file } from './archive/entry.ts';
import { writeTar } from './archive/tar.ts';
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
  const options = { timeSeconds: origin.timeSeconds, prefix: './' };
  const control = [
    file('control', controlText(entries, architecture, origin)),
    file('conffiles', Object.keys(CONFFILES).map(linesOfPaths).join('')),
    file('md5sums', entries.flatMap(sumLine).join('')),
    ...SCRIPTS.map((name) => file(name, readFileSync(join(root, 'tools/release/debian', name)), EXECUTABLE)),
  ];
  const members = [
    { name: 'debian-binary', data: Buffer.from('2.0\n') },
    { name: 'control.tar.gz', data: gzipSync(writeTar(control, options)) },
    { name: 'data.tar.gz', data: gzipSync(writeTar(entries, options)) },
  ];
  return writeAr(members, origin.timeSeconds);
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

/** As md5sum writes it; `dpkg --verify` reads it. What the administrator changes is not in it. */
function sumLine(entry: ArchiveEntry): string[] {
  if (entry.type !== 'file' || entry.path in CONFFILES) return [];
  return [`${createHash('md5').update(entry.data).digest('hex')}  ${entry.path}\n`];
}

function linesOfPaths(path: string): string {
  return `/${path}\n`;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

// Archives in the common format of ar(5), as Debian's packages are (deb(5)): a line, then each member behind a header
// of 60 bytes, at even places.

interface Member {
  readonly name: string;
  readonly data: Buffer;
}

const MAGIC = '!<arch>\n';
const MAX_NAME_BYTES = 16;
const MODE = 0o100644;

export function writeAr(members: readonly Member[], timeSeconds: number): Buffer {
  const parts = members.flatMap(({ name, data }) => {
    if (name.length > MAX_NAME_BYTES) throw new BuildError(`${name} is too long a name for a member of a package`);
    const fields: readonly (readonly [string | number, number])[] = [
      [name, MAX_NAME_BYTES],
      [timeSeconds, 12],
      [0, 6], // owner
      [0, 6], // group
      [MODE.toString(8), 8],
      [data.length, 10],
    ];
    const header = `${fields.map(([value, width]) => String(value).padEnd(width)).join('')}\`\n`;
    return [Buffer.from(header, 'latin1'), data, Buffer.from(data.length % 2 === 0 ? '' : '\n')];
  });
  return Buffer.concat([Buffer.from(MAGIC), ...parts]);
}
