// Suite "appliance": an enclave image as `strongroom eif build` makes it, booted beside its parent. The kernel does not
// support Nitro and nothing here is AWS: the NSM is the emulator behind /dev/nsm, told what the image measures, and KMS
// and DynamoDB are stand-ins behind TLS under their own names. Everything between them is the program itself. All keys
// are TEST keys.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type CpioEntry, writeCpio } from '../../../eif/format/cpio.ts';
import { readImage } from '../../../eif/format/format.ts';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { baseEntries } from '../base-ramdisk.ts';
import { PROGRAMS_FOLDER, programEntries } from '../bundle.ts';
import type { GuestSuite } from '../suite.ts';
import { buildAppliance } from './image.ts';
import { CONFIGURATION, GUEST, type GuestSettings, LOOPBACK_CID, PARENT_HOSTS } from './settings.ts';
import { SIGNATURE_IS_VALID } from './signature.ts';

const PROGRAMS = {
  world: 'test/guest/appliance/programs/world.ts',
  operator: 'test/guest/appliance/programs/operator.ts',
  'parent-proxy': 'test/guest/appliance/programs/parent-proxy.ts',
  'nsm-cuse': 'test/support/nsm-cuse.ts',
};
/** A folder above the programs, where rehearsal/dynamodb.ts looks for it. */
const DYNAMODB = 'node_modules/@dynoxide/linux-x64/dynoxide';
const MEMORY_MIB = 2048;
const TIME_LIMIT_MS = 300_000;

export const applianceSuite: GuestSuite = {
  name: 'appliance',
  async prepare(packages, folder) {
    const { image, measurements, identity, registers, tls } = await buildAppliance({
      folder: join(folder, 'appliance'),
      kernel: packages.kernel,
      cmdline: `console=ttyS0 quiet panic=-1 reboot=t strongroom.parent_cid=${LOOPBACK_CID}`,
      configuration: CONFIGURATION,
    });
    const settings: GuestSettings = { identity, registers };
    const outer = baseEntries(packages, { withoutNode: true });
    const programs = await programEntries(PROGRAMS);
    const added = [
      file(GUEST.certificate, readFileSync(tls.certificate)),
      file(GUEST.key, readFileSync(tls.key), 0o600),
      ...programs,
      file('test/init', readFileSync(join(import.meta.dirname, 'init.sh')), 0o755),
      file(GUEST.settings, JSON.stringify(settings)),
      file(GUEST.configuration, CONFIGURATION),
      file(GUEST.measurements, measurements),
      file('test/hosts', PARENT_HOSTS.map((pair) => `${pair.join(' ')}\n`).join('')),
      file(join(dirname(PROGRAMS_FOLDER), DYNAMODB), readFileSync(join(PROJECT_ROOT, DYNAMODB)), 0o755),
      { type: 'symlink', path: 'bin/sh', target: '/test/bin/busybox' } as const,
    ];
    return [
      {
        ramdisks: [...readImage(image).ramdisks, writeCpio(outer), writeCpio(added)],
        cmdline: `rdinit=/test/init strongroom.parent_cid=${LOOPBACK_CID}`,
        memoryMiB: MEMORY_MIB,
        timeLimitMs: TIME_LIMIT_MS,
        outside: [SIGNATURE_IS_VALID],
      },
    ];
  },
};

/** @param path with a leading slash or without */
function file(path: string, data: string | Buffer, mode = 0o644): CpioEntry {
  return { type: 'file', path: path.replace(/^\//, ''), data: Buffer.from(data), mode };
}
