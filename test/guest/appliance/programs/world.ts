// The parent's side of the guest: a power supply (the NSM), nitro-cli's heartbeat, AWS (stand-ins), the parent proxy,
// and then the scenario. Everything that runs is a process; this one ends with the verdict.

import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AWS_NITRO } from '../../../../common/attestation/contract.ts';
import { loadAddon } from '../../../../signer/native/load.ts';
import { vsockTransport } from '../../../../signer/native/vsock.ts';
import {
  CUSTODY_KEYS,
  GUEST,
  type GuestSettings,
  HEARTBEAT_PORT,
  LATER_CUSTODY_KEYS,
  type LaterImage,
  LOOPBACK_CID,
  PARENT_HOSTS,
} from '../settings.ts';
import { lifeOfAnAppliance } from './life.ts';
import { type RunningEnclave, start, startEnclave } from './processes.ts';
import { startStandIns } from './stand-ins.ts';
import { perform } from './steps.ts';

const HEARTBEAT = 0xb7;

const settings = JSON.parse(readFileSync(GUEST.settings, 'utf8')) as GuestSettings;
const nsm = await startNsm(settings.registers);
writeFileSync(GUEST.root, nsm.root);
trustTheEmulator(nsm.root);
const standIns = await startStandIns({
  documents: { attestationRoot: nsm.root },
  registers: policyOf([settings.registers]),
  tls: { cert: readFileSync(GUEST.certificate), key: readFileSync(GUEST.key) },
  // The address that the parent's /etc/hosts gives the name.
  addressOf: (hostname) => ({ host: PARENT_HOSTS.find(([, name]) => name === hostname)?.[0] ?? '', port: 443 }),
});
const heartbeats = await answerHeartbeats();
await startParentProxy();

const passed = await perform(
  lifeOfAnAppliance({
    settings,
    standIns,
    heartbeats,
    async bootEnclave(): Promise<RunningEnclave> {
      await nsm.reset();
      return startEnclave();
    },
    installImage,
  }),
);
process.exit(passed ? 0 : 1);

/**
 * The emulator signs in AWS's place, so its root takes the place of AWS's in the signer of this guest, which has no
 * setting for that. What else the image contains stays as it was built.
 */
function trustTheEmulator(root: string): void {
  const modules = readdirSync(GUEST.signer).filter((name) => name.endsWith('.mjs'));
  const texts = modules.map((name) => [name, readFileSync(join(GUEST.signer, name), 'utf8')] as const);
  const naming = texts.filter(([, text]) => text.includes(AWS_NITRO.rootSha256));
  const [[name, text] = ['', '']] = naming;
  const parts = text.split(AWS_NITRO.rootSha256);
  if (naming.length !== 1 || parts.length !== 2)
    throw new Error(`${naming.length} modules of the signer name the root of AWS, the first ${parts.length - 1} times`);
  writeFileSync(join(GUEST.signer, name), parts.join(root));
}

function policyOf(images: readonly GuestSettings['registers'][]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries([0, 16, 17].map((index) => [`PCR${index}`, images.map((image) => image[index] ?? '')]));
}

/** What an upgrade is: the files of the image in the place of the former one's, and its registers in the policies. */
function installImage(name: LaterImage): void {
  const at = settings.later.findIndex((image) => image.name === name);
  const image = settings.later[at];
  if (image === undefined) throw new Error(`there is no image ${name}`);
  for (const file of image.files) copyFileSync(join(GUEST.images, name, file), join('/', file));
  copyFileSync(join(GUEST.images, name, 'pcrs.json'), GUEST.measurements);
  writeFileSync(GUEST.nsm, JSON.stringify(measured(image.registers)));
  const known = settings.later.slice(0, at + 1).map(({ registers }) => registers);
  for (const arn of [...CUSTODY_KEYS, ...LATER_CUSTODY_KEYS])
    standIns.kms.requireAttestation(arn, policyOf([settings.registers, ...known]));
}

interface Nsm {
  readonly root: string;
  reset(): Promise<void>;
}

/** Measured registers at their values; the enclave's own, 16 and above, at zero. */
function measured(registers: GuestSettings['registers']): object {
  return Object.fromEntries(Object.entries(registers).filter(([index]) => Number(index) < 16));
}

async function startNsm(registers: GuestSettings['registers']): Promise<Nsm> {
  writeFileSync(GUEST.nsm, JSON.stringify(measured(registers)));
  let heard: (line: string) => void = () => undefined;
  const line = (pattern: RegExp): Promise<string> =>
    new Promise((resolve) => {
      heard = (text) => {
        const [, found = ''] = pattern.exec(text) ?? [];
        if (pattern.test(text)) resolve(found);
      };
    });
  const begun = line(/^nsm-cuse root ([0-9a-f]{64})$/);
  const child = start('nsm-cuse', ['--pcrs-file', GUEST.nsm], { onLine: (text) => heard(text) });
  const root = await begun;
  return {
    root,
    async reset() {
      const done = line(/^nsm-cuse reset$/);
      child.kill('SIGHUP');
      await done;
    },
  };
}

/** What nitro-cli does while it starts an enclave. @returns how many came */
async function answerHeartbeats(): Promise<() => number> {
  const addon = loadAddon();
  if (addon === undefined) throw new Error('the native addon is not in the guest');
  let count = 0;
  await vsockTransport(addon, { peerCid: LOOPBACK_CID }).listen(HEARTBEAT_PORT, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (byte) => {
      if (byte.length === 1 && byte[0] === HEARTBEAT) count += 1;
      socket.end(byte);
    });
  });
  return () => count;
}

/** With credentials of its own, as an instance has them from its role. */
async function startParentProxy(): Promise<void> {
  const ready = Promise.withResolvers<void>();
  const child = start('parent-proxy', ['-c', GUEST.configuration], {
    env: { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_SESSION_TOKEN: 'test' },
    onLine: (text) => {
      if (text.includes('"msg":"ready"') || text.includes(' ready')) ready.resolve();
    },
  });
  child.once('close', (code) => ready.reject(new Error(`the parent proxy ended with ${code}`)));
  await ready.promise;
}
