// The parent's side of the guest: a power supply (the NSM), nitro-cli's heartbeat, AWS (stand-ins), the parent proxy,
// and then the scenario. Everything that runs is a process; this one ends with the verdict.

import { readFileSync, writeFileSync } from 'node:fs';
import { loadAddon } from '../../../../enclave/native/load.ts';
import { vsockTransport } from '../../../../enclave/native/vsock.ts';
import { GUEST, type GuestSettings, HEARTBEAT_PORT, LOOPBACK_CID, PARENT_HOSTS } from '../settings.ts';
import { lifeOfAnAppliance } from './life.ts';
import { type RunningEnclave, start, startEnclave } from './processes.ts';
import { startStandIns } from './stand-ins.ts';
import { perform } from './steps.ts';

const HEARTBEAT = 0xb7;

const settings = JSON.parse(readFileSync(GUEST.settings, 'utf8')) as GuestSettings;
const nsm = await startNsm(settings.registers);
writeFileSync(GUEST.root, nsm.root);
const { 0: pcr0 = '', 16: pcr16 = '', 17: pcr17 = '' } = settings.registers;
const standIns = await startStandIns({
  documents: { attestationRoot: nsm.root },
  registers: { PCR0: [pcr0], PCR16: [pcr16], PCR17: [pcr17] },
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
  }),
);
process.exit(passed ? 0 : 1);

interface Nsm {
  /** SHA-256 of its root certificate, hex. */
  readonly root: string;
  /** A power cycle of the enclave. */
  reset(): Promise<void>;
}

/** Measured registers at their values; the enclave's own, 16 and above, at zero. */
async function startNsm(registers: Readonly<Record<string, string>>): Promise<Nsm> {
  const measured = Object.fromEntries(Object.entries(registers).filter(([index]) => Number(index) < 16));
  let heard: (line: string) => void = () => undefined;
  const line = (pattern: RegExp): Promise<string> =>
    new Promise((resolve) => {
      heard = (text) => {
        const [, found = ''] = pattern.exec(text) ?? [];
        if (pattern.test(text)) resolve(found);
      };
    });
  const begun = line(/^nsm-cuse root ([0-9a-f]{64})$/);
  const child = start('nsm-cuse', ['--pcrs', JSON.stringify(measured)], { onLine: (text) => heard(text) });
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
