// Kernel modules out of an unpacked package: what a module needs comes before it, whatever it is compressed with.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, expect, it } from 'vitest';
import { lacking } from '../support/needs.ts';
import { modulesInOrder } from './modules.ts';
import { GuestUnavailable } from './tools.ts';

const folder = mkdtempSync(join(tmpdir(), 'strongroom-modules-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What of a module is looked at: the entries of .modinfo. */
function moduleNeeding(...names: readonly string[]): Buffer {
  return Buffer.from(`\x7fELF\0license=GPL\0depends=${names.join(',')}\0retpoline=Y\0`, 'latin1');
}

function write(path: string, data: Buffer): void {
  mkdirSync(join(folder, 'kernel', path, '..'), { recursive: true });
  writeFileSync(join(folder, 'kernel', path), data);
}

write('net/vmw_vsock/vsock.ko', moduleNeeding());
write('net/vmw_vsock/vmw_vsock_virtio_transport_common.ko.zst', zstdCompressSync(moduleNeeding('vsock')));
write('net/vmw_vsock/vsock_loopback.ko', moduleNeeding('vmw_vsock_virtio_transport_common', 'vsock'));
write('net/with-hyphens.ko', moduleNeeding('lost-one'));

it('a module comes behind what it needs, and once', () => {
  expect(modulesInOrder(folder, ['vsock_loopback', 'vsock']).map(({ name }) => name)).toEqual([
    'vsock',
    'vmw_vsock_virtio_transport_common',
    'vsock_loopback',
  ]);
});

it.skipIf(lacking('xz'))('compressed modules are decompressed: insmod of busybox takes nothing else', () => {
  write('fs/cuse.ko', moduleNeeding());
  execFileSync('xz', [join(folder, 'kernel/fs/cuse.ko')]);
  expect(modulesInOrder(folder, ['cuse'])).toEqual([{ name: 'cuse', data: moduleNeeding() }]);
});

it('a module that is not there ends it, and says which', () => {
  expect(() => modulesInOrder(folder, ['with_hyphens'])).toThrow(GuestUnavailable);
  expect(() => modulesInOrder(folder, ['with_hyphens'])).toThrow(/no module lost_one/);
});
