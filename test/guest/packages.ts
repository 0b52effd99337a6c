// Debian's packages that the guest is made of, unpacked under build/guest and never installed: its cloud kernel and a
// static busybox. They come through apt, which verifies them against the archive's keys.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { GuestUnavailable, isRoot, run } from './tools.ts';

export interface GuestPackages {
  readonly kernel: string;
  /** The folder with modules.builtin and kernel/. */
  readonly modules: string;
  readonly busybox: string;
}

const KERNEL_PACKAGE = 'linux-image-cloud-amd64';
const KERNEL_OF_DEBIAN_12 = 'linux-image-6.1.';
const BUSYBOX_PACKAGE = 'busybox-static';

/** @param folder keeps what was unpacked: later calls take nothing from the network @throws GuestUnavailable */
export function openPackages(folder: string): GuestPackages {
  mkdirSync(folder, { recursive: true });
  const kernel = unpacked(folder, 'kernel', kernelPackage);
  const busybox = unpacked(folder, 'busybox', () => BUSYBOX_PACKAGE);
  return {
    kernel: join(kernel, 'boot', only(join(kernel, 'boot'), /^vmlinuz-/)),
    modules: join(kernel, 'lib/modules', only(join(kernel, 'lib/modules'), /./)),
    busybox: join(
      busybox,
      ['bin', 'usr/bin'].find((bin) => existsSync(join(busybox, bin, 'busybox'))) ?? 'bin',
      'busybox',
    ),
  };
}

/**
 * The package that the one without a version depends on. Debian 12's: what Linux 6.12 of Debian 13 starts in this
 * machine gets no word onto the console.
 */
function kernelPackage(): string {
  const name = /Depends: (linux-image-\S+)/.exec(run('apt-cache', ['depends', KERNEL_PACKAGE]).toString())?.[1];
  if (name === undefined)
    throw new GuestUnavailable(`this system's archive has no ${KERNEL_PACKAGE}: the guest needs Debian's`);
  if (!name.startsWith(KERNEL_OF_DEBIAN_12))
    throw new GuestUnavailable(
      `the guest boots the kernel of Debian 12, and this system's archive has ${name}: use a Debian 12, in a chroot or container if you like`,
    );
  return name;
}

/** Unpacked beside its place and moved into it, so that half of it is never taken for the whole. */
function unpacked(folder: string, name: string, packageName: () => string): string {
  const place = join(folder, name);
  if (existsSync(place)) return place;
  const aside = mkdtempSync(join(folder, `${name}.`));
  try {
    const archive = join(aside, download(packageName, aside));
    run('dpkg-deb', ['-x', archive, join(aside, 'root')]);
    if (!existsSync(place)) renameSync(join(aside, 'root'), place); // another run may have been faster
    return place;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/**
 * @returns the file's name. Lists that are missing or name a version the archive no longer has are renewed, once, by
 * root.
 */
function download(packageName: () => string, into: string): string {
  const attempt = (): string => {
    run('apt-get', ['download', '-q', packageName()], { cwd: into });
    return only(into, /\.deb$/);
  };
  try {
    return attempt();
  } catch (error) {
    if (!isRoot()) throw error;
    run('apt-get', ['update', '-q']);
    return attempt();
  }
}

function only(folder: string, pattern: RegExp): string {
  const [name, another] = readdirSync(folder).filter((entry) => pattern.test(entry));
  if (name === undefined || another !== undefined) throw new GuestUnavailable(`${folder} does not have one ${pattern}`);
  return name;
}
