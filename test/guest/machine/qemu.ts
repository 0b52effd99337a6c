// QEMU with its machine `nitro-enclave` (since 9.2), which Debian's own build leaves out: built from Debian's source
// with nothing else in it. The machine boots an EIF file and measures it as the Nitro hypervisor does; its security
// module speaks to the mainline driver.

import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { cached } from '../cache.ts';
import type { NewerDebian } from '../newer-debian.ts';
import { requirePackages, run } from '../tools.ts';

/** From the machine's own Debian: what QEMU is compiled with and linked to. */
const BUILD_PACKAGES = [
  ...['build-essential', 'dpkg-dev', 'pkg-config', 'ninja-build', 'flex', 'bison', 'python3-venv', 'xz-utils'],
  ...['libcbor-dev', 'libgnutls28-dev', 'libglib2.0-dev', 'libfdt-dev', 'zlib1g-dev'],
];
/** Four minutes on two cores that have nothing else to do. */
const BUILD_LIMIT_MS = 20 * 60_000;
const TARGET = 'x86_64-softmmu';
const DEVICES = 'CONFIG_NITRO_ENCLAVE=y\n';
const CONFIGURE = [
  ...['--python=/usr/bin/python3', '--disable-download', `--target-list=${TARGET}`, '--enable-system', '--enable-tcg'],
  ...['--without-default-features', '--without-default-devices', '--with-devices-x86_64=nitro'],
  ...['--enable-gnutls', '--enable-libcbor', '--enable-fdt=system', '--enable-vhost-user'],
  ...['--disable-docs', '--disable-install-blobs', '--disable-debug-info'],
];
const PROGRAM = 'qemu-system-x86_64';

/** @returns the program @throws GuestUnavailable */
export function nitroQemu(debian: NewerDebian): string {
  const version = debian.sourceVersion('qemu');
  const recipe = [version, DEVICES, ...CONFIGURE, ...BUILD_PACKAGES];
  const folder = cached('qemu-nitro', recipe, (into) => {
    requirePackages(BUILD_PACKAGES);
    build(debian, join(into, 'work'));
    copyFileSync(join(into, 'work/build', PROGRAM), join(into, PROGRAM));
    rmSync(join(into, 'work'), { recursive: true });
  });
  return join(folder, PROGRAM);
}

function build(debian: NewerDebian, work: string): void {
  debian.unpackSource('qemu', join(work, 'qemu'));
  // Its source wants a meson that Debian 12 does not have; a Python program runs from where it was unpacked.
  debian.unpack('meson', join(work, 'meson'));
  const env = { PYTHONPATH: join(work, 'meson/root/usr/lib/python3/dist-packages') };
  const source = join(work, 'qemu/source');
  writeFileSync(join(source, 'configs/devices', TARGET, 'nitro.mak'), DEVICES);
  mkdirSync(join(work, 'build'));
  const options = { cwd: join(work, 'build'), env, timeoutMs: BUILD_LIMIT_MS };
  run(join(source, 'configure'), CONFIGURE, options);
  run('ninja', ['-j', String(availableParallelism()), PROGRAM], options);
}

/**
 * Firmware is not part of the build: Debian's packages have it, for any version of QEMU. Asked for when it is needed:
 * on a new machine an earlier suite of this run has installed it.
 */
export function firmwareFolders(): readonly string[] {
  return ['/usr/share/qemu', '/usr/share/seabios'].filter((folder) => hasFiles(folder));
}

function hasFiles(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}
