// Suite "appliance": an enclave image as `strongroom eif build` makes it, booted beside its parent. The kernel does not
// support Nitro and nothing here is AWS: the NSM is the emulator behind /dev/nsm, told what the image measures, and KMS
// and DynamoDB are stand-ins behind TLS under their own names. Everything between them is the program itself. All keys
// are TEST keys.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type CpioEntry, readCpio, writeCpio } from '../../../eif/format/cpio.ts';
import { readImage } from '../../../eif/format/format.ts';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { baseEntries } from '../base-ramdisk.ts';
import { PROGRAMS_FOLDER, programEntries } from '../bundle.ts';
import type { GuestPackages } from '../packages.ts';
import type { GuestSuite } from '../suite.ts';
import { keyIsProven } from './evidence.ts';
import { type Appliance, buildAppliance } from './image.ts';
import {
  CONFIGURATION,
  enclaveConfiguration,
  GUEST,
  type GuestSettings,
  LATER_CUSTODY_KEYS,
  type LaterImage,
  LOOPBACK_CID,
  PARENT_HOSTS,
  withParentProxy,
} from './settings.ts';
import { SIGNATURE_IS_VALID } from './signature.ts';

const PROGRAMS = {
  world: 'test/guest/appliance/programs/world.ts',
  operator: 'test/guest/appliance/programs/operator.ts',
  'parent-proxy': 'test/guest/appliance/programs/parent-proxy.ts',
  'nsm-cuse': 'test/support/nsm-cuse.ts',
};
/** Beneath the folder above that of the bundles, where rehearsal/dynamodb.ts looks for it. */
const DYNAMODB = 'node_modules/@dynoxide/linux-x64/dynoxide';
const MEMORY_MIB = 2048;
const TIME_LIMIT_MS = 420_000;

export const applianceSuite: GuestSuite = {
  name: 'appliance',
  async prepare(packages, folder, tell = () => undefined) {
    const { first, later } = await buildImages(packages, folder, tell);
    const { image, measurements, identity, registers, tls } = first;
    const changed = later.map((one) => ({ ...one, files: changedFiles(first.image, one.appliance.image) }));
    const settings: GuestSettings = {
      identity,
      registers,
      later: changed.map(({ name, appliance, files }) => ({
        ...{ name, registers: appliance.registers },
        files: files.map(({ path }) => path),
      })),
    };
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
      ...changed.flatMap(({ name, appliance, files }) => [
        ...files.map(({ path, data }) => file(join(GUEST.images, name, path), data)),
        file(join(GUEST.images, name, 'pcrs.json'), appliance.measurements),
      ]),
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
        outside: [SIGNATURE_IS_VALID, keyIsProven({ first, ...byName(later) })],
      },
    ];
  },
};

interface Later {
  readonly name: LaterImage;
  readonly appliance: Appliance;
}

/** An image, one that replaces it, and one with the next ceremony: each accepts those before it. */
async function buildImages(packages: GuestPackages, folder: string, tell: (line: string) => void) {
  const common = {
    kernel: packages.kernel,
    cmdline: `console=ttyS0 quiet panic=-1 reboot=t strongroom.parent_cid=${LOOPBACK_CID}`,
  };
  tell('1 of 3: the image of the first boot');
  const first = await buildAppliance({ ...common, folder: join(folder, 'appliance'), configuration: CONFIGURATION });
  const accepting = (...images: readonly Appliance[]): string =>
    withParentProxy(enclaveConfiguration(images.map(({ registers }) => registers)));
  tell('2 of 3: one that replaces it, with another configuration');
  const upgraded = await buildAppliance({
    ...{ ...common, folder: join(folder, 'appliance-upgraded'), after: first },
    configuration: accepting(first),
  });
  tell('3 of 3: one with the next ceremony');
  const rotated = await buildAppliance({
    ...{ ...common, folder: join(folder, 'appliance-rotated'), after: first },
    configuration: accepting(first, upgraded),
    ceremony: {
      ...first.ceremony,
      generation: 2,
      kms_keys: LATER_CUSTODY_KEYS.map((arn) => ({ arns: [arn] })),
      retired_kms_keys: first.ceremony.kms_keys,
      previous_ceremony: first.ceremonyDigest,
    },
  });
  const later: readonly Later[] = [
    { name: 'upgraded', appliance: upgraded },
    { name: 'rotated', appliance: rotated },
  ];
  return { first, later };
}

function byName(later: readonly Later[]): Readonly<Record<LaterImage, Appliance>> {
  return Object.fromEntries(later.map(({ name, appliance }) => [name, appliance])) as Record<LaterImage, Appliance>;
}

/** Files of an image that another one has otherwise; it has none more. */
function changedFiles(before: Buffer, after: Buffer): readonly { readonly path: string; readonly data: Buffer }[] {
  const filesIn = (image: Buffer) =>
    readImage(image)
      .ramdisks.flatMap((ramdisk) => readCpio(ramdisk))
      .flatMap((entry) => (entry.type === 'file' ? [{ path: entry.path, data: Buffer.from(entry.data) }] : []));
  const known = new Map(filesIn(before).map(({ path, data }) => [path, data]));
  return filesIn(after).filter(({ path, data }) => known.get(path)?.equals(data) !== true);
}

/** @param path with a leading slash or without */
function file(path: string, data: string | Buffer, mode = 0o644): CpioEntry {
  return { type: 'file', path: path.replace(/^\//, ''), data: Buffer.from(data), mode };
}
