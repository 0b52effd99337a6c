// Suite "appliance": an enclave image as `strongroom eif build` makes it, booted beside its parent. The kernel does not support Nitro and
// nothing here is AWS: the NSM is the emulator behind /dev/nsm, told what the image measures, and KMS and DynamoDB are stand-ins behind
// TLS under their own names. Everything between them is the program itself. All keys are TEST keys.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateAgeIdentity } from '../../../ceremony/age.ts';
import { type CpioEntry, writeCpio } from '../../../eif/cpio.ts';
import { readImage } from '../../../eif/format.ts';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { baseEntries } from '../base-ramdisk.ts';
import { programEntries } from '../bundle.ts';
import type { GuestPackages } from '../packages.ts';
import type { GuestSuite } from '../suite.ts';
import { run } from '../tools.ts';
import { makeAuthority } from './authority.ts';
import {
  CONFIGURATION,
  CUSTODY_KEYS,
  DYNAMODB_HOST,
  GUEST,
  type GuestSettings,
  KMS_HOST,
  LOOPBACK_CID,
  PARENT_HOSTS,
} from './settings.ts';
import { SIGNATURE_IS_VALID } from './signature.ts';

const PROGRAMS = {
  world: 'test/guest/appliance/programs/world.ts',
  operator: 'test/guest/appliance/programs/operator.ts',
  'parent-proxy': 'test/guest/appliance/programs/parent-proxy.ts',
  'nsm-cuse': 'test/support/nsm-cuse.ts',
};
/** Two folders above the programs, where test/support/dynamodb.ts looks for it. */
const DYNAMODB = 'node_modules/@dynoxide/linux-x64/dynoxide';
const MEMORY_MIB = 2048;
const TIME_LIMIT_MS = 300_000;

export const applianceSuite: GuestSuite = {
  name: 'appliance',
  async prepare(packages, folder) {
    const { image, measurements, settings, files } = await buildAppliance(packages, join(folder, 'appliance'));
    const outer = baseEntries(packages, { withoutNode: true });
    const programs = await programEntries(PROGRAMS);
    const added = [
      ...files,
      ...programs,
      file('test/init', readFileSync(join(import.meta.dirname, 'init.sh')), 0o755),
      file(GUEST.settings, JSON.stringify(settings)),
      file(GUEST.configuration, CONFIGURATION),
      file(GUEST.measurements, measurements),
      file('test/hosts', PARENT_HOSTS.map((pair) => `${pair.join(' ')}\n`).join('')),
      file(join('test', DYNAMODB), readFileSync(join(PROJECT_ROOT, DYNAMODB)), 0o755),
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

interface Appliance {
  readonly image: Buffer;
  /** pcrs.json */
  readonly measurements: Buffer;
  readonly settings: GuestSettings;
  readonly files: readonly CpioEntry[];
}

/** With the program's own commands, as an operator builds one. */
async function buildAppliance(packages: GuestPackages, folder: string): Promise<Appliance> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { identity, recipient } = await generateAgeIdentity();
  const tls = makeAuthority(folder, [DYNAMODB_HOST, KMS_HOST]);
  const written = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const imageFile = written('image.yaml', imageYaml(packages));
  const ceremony = written('ceremony.yaml', ceremonyYaml(recipient));
  const configuration = written('config.yaml', CONFIGURATION);
  execFileSync('make', ['-s', 'image-parts'], { cwd: PROJECT_ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const args = ['--image', imageFile, '--ceremony', ceremony, '--config', configuration];
  run(join(PROJECT_ROOT, 'bin/strongroom'), ['eif', 'build', ...args, '--ca', tls.authority, '--directory', folder]);
  const measurements = readFileSync(join(folder, 'pcrs.json'));
  return {
    image: readFileSync(join(folder, 'image.eif')),
    measurements,
    settings: { identity, registers: registersOf(measurements) },
    files: [file(GUEST.certificate, readFileSync(tls.certificate)), file(GUEST.key, readFileSync(tls.key), 0o600)],
  };
}

/** Of the registers by index, hex. */
function registersOf(pcrs: Buffer): Readonly<Record<string, string>> {
  const { measurements } = JSON.parse(pcrs.toString('utf8')) as { measurements: Readonly<Record<string, string>> };
  return Object.fromEntries(Object.entries(measurements).map(([name, value]) => [name.replace('PCR', ''), value]));
}

function imageYaml({ kernel }: GuestPackages): string {
  const sha256 = createHash('sha256').update(readFileSync(kernel)).digest('hex');
  return `name: strongroom-test
kernel: { path: ${kernel}, sha256: ${sha256} }
cmdline: console=ttyS0 quiet panic=-1 reboot=t strongroom.parent_cid=${LOOPBACK_CID}
`;
}

function ceremonyYaml(recipient: string): string {
  return `generation: 1
kms_threshold: 2
kms_keys:
${CUSTODY_KEYS.map((arn) => `  - { arns: [${arn}] }`).join('\n')}
retired_kms_keys: []
root_token_recipients: [${recipient}]
`;
}

/** @param path with a leading slash or without */
function file(path: string, data: string | Buffer, mode = 0o644): CpioEntry {
  return { type: 'file', path: path.replace(/^\//, ''), data: Buffer.from(data), mode };
}
