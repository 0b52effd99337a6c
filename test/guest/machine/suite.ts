// Suite "machine": the EIF file itself, as a Nitro host is given it, on QEMU's machine `nitro-enclave` with the
// mainline NSM driver. Nothing is unpacked or added: the machine reads the file, measures it, and starts what is in it.
// Two things differ from a Nitro host, and the image states both on its measured command line: the host is CID 2, and
// documents are unsigned. The parent's side runs on this side of vsock.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Appliance, buildAppliance } from '../appliance/image.ts';
import { timestampCounter, watchMachine } from '../boot-guest.ts';
import { cached, cacheRoot } from '../cache.ts';
import { modulesInOrder } from '../modules.ts';
import { type NewerDebian, openNewerDebian } from '../newer-debian.ts';
import { type Checks, createChecks } from '../outside-checks.ts';
import type { OutsideSuite } from '../suite.ts';
import { type BootMachine, type BuildImage, livesOverADatabase } from './database.ts';
import { lifeOnTheMachine } from './life.ts';
import { type ParentSide, startParentSide, startStandInsOf } from './parent.ts';
import { firmwareFolders, nitroQemu } from './qemu.ts';
import { CMDLINE, CONFIGURATION, GUEST_CID } from './settings.ts';
import { startVsockDevice, type VsockDevice, vsockDeviceProgram } from './vsock-device.ts';

/** Debian's kernel has them as modules; an enclave's own kernel would have all but the first built in (eif/kernel). */
const MODULES = ['nsm', 'virtio_mmio', 'vmw_vsock_virtio_transport'];
const MEMORY_MIB = 2048;
/** Counted in the time in which the machine let it run. */
const TIME_LIMIT_MS = 600_000;

export const machineSuite: OutsideSuite = {
  name: 'machine',
  async run(folder, show) {
    const debian = openNewerDebian(join(cacheRoot(), 'debian'));
    const device = vsockDeviceProgram(); // first: whoever has no cargo need not build QEMU
    const programs = { device, qemu: nitroQemu(debian) };
    const kernel = ownKernel() ?? debianKernel(debian, `${folder}/machine-modules`);
    const build: BuildImage = (name, options) =>
      buildAppliance({
        ...{ folder: join(folder, name), kernel: kernel.image, modules: kernel.modules, cmdline: CMDLINE },
        ...options,
      });
    const startedAt = performance.now();
    const checks = createChecks(show);
    const boot = bootsOf(programs, kernel.acpi, checks);
    const appliance = await build('machine', { configuration: CONFIGURATION });
    const standIns = await startStandInsOf(appliance);
    try {
      const startParent = (unixPath: string) => startParentSide(standIns, unixPath);
      const console = join(folder, 'machine.log');
      await boot(appliance, { console, startParent }, (parts) => lifeOnTheMachine(checks, parts));
    } finally {
      await standIns.close();
    }
    await livesOverADatabase(checks, { build, boot, after: appliance, folder });
    checks.done();
    show(`${((performance.now() - startedAt) / 1000).toFixed(1)} s; its consoles are ${folder}/machine*.log`);
    return checks.tally;
  },
};

interface Kernel {
  readonly image: string;
  readonly modules: readonly string[];
  /** Whether it finds its devices by ACPI, or on its command line as on Nitro. */
  readonly acpi: 'on' | 'off';
}

/**
 * One built with eif/kernel, which has everything built in: to see it boot before it is pinned (docs/guides/image.md).
 */
function ownKernel(): Kernel | undefined {
  const image = process.env['STRONGROOM_ENCLAVE_KERNEL'];
  return image === undefined ? undefined : { image, modules: [], acpi: 'off' };
}

/** @param folder gets its modules, uncompressed */
function debianKernel(debian: NewerDebian, folder: string): Kernel {
  const name = debian.dependencyOf('linux-image-cloud-amd64', /Depends: (linux-image-\S+)/);
  const released = [name, debian.packageVersion(name)];
  const root = join(
    cached('kernel', released, (into) => debian.unpack(name, into)),
    'root',
  );
  const [version = ''] = readdirSync(join(root, 'usr/lib/modules'));
  mkdirSync(folder, { recursive: true });
  const modules = modulesInOrder(join(root, 'usr/lib/modules', version), MODULES).map((module) => {
    const path = join(folder, `${module.name}.ko`);
    writeFileSync(path, module.data);
    return path;
  });
  return { image: join(root, 'boot', `vmlinuz-${version}`), modules, acpi: 'on' };
}

interface Programs {
  readonly qemu: string;
  readonly device: string;
}

/** Whatever fails, everything that was started has ended when it returns. */
function bootsOf({ qemu, device }: Programs, acpi: Kernel['acpi'], checks: Checks): BootMachine {
  return async (appliance, { console, startParent, mayEnd = false }, live) => {
    const folder = mkdtempSync(join(tmpdir(), 'sr-machine-'));
    const started: { device?: VsockDevice; parent?: ParentSide; machine?: ChildProcess } = {};
    try {
      started.device = await startVsockDevice(device, folder, GUEST_CID);
      started.parent = await startParent(started.device.unixPath);
      started.machine = spawn(qemu, machineArguments(appliance, started.device, acpi), {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const machine = watchMachine(started.machine, { console, timeLimitMs: TIME_LIMIT_MS });
      const { machine: child, parent } = started;
      const ended = machine.then(() => undefined);
      const lived = live({ appliance, parent, consoleFile: console, ended, hasEnded: () => hasEnded(child) });
      let isOver = mayEnd;
      const endedEarly = () => isOver || checks.abandon(`the machine has ended: ${lastLines(console)}`);
      await (mayEnd ? lived : Promise.race([lived, ended.then(endedEarly)]));
      isOver = true;
      child.kill('SIGKILL');
      await machine;
    } finally {
      await hasBeenKilled(started.machine);
      await started.parent?.close();
      await hasBeenKilled(started.device?.child);
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

function machineArguments({ file }: Appliance, { socket }: VsockDevice, acpi: Kernel['acpi']): string[] {
  // Debian's kernel takes no devices from the command line. The words of -append are the host's, as those that the
  // Nitro hypervisor adds: not measured.
  return [
    ...['-machine', `nitro-enclave,vsock=vsock,id=strongroom-test,acpi=${acpi}`, '-accel', 'tcg', '-cpu', 'max'],
    ...['-smp', String(Math.min(2, availableParallelism())), '-m', String(MEMORY_MIB)],
    ...['-chardev', `socket,id=vsock,path=${socket}`, '-kernel', file],
    ...['-append', `cryptomgr.notests ${timestampCounter()}`],
    // QEMU starts a queue's event with a notice of its own. Late, it finds half of the first request to the security
    // module in the queue, and breaks the device. Without events, only the guest's notices are there.
    ...['-global', 'virtio-mmio.ioeventfd=off'],
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-serial', 'stdio'],
    ...firmwareFolders().flatMap((folder) => ['-L', folder]),
  ];
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

async function hasBeenKilled(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || hasEnded(child)) return;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

function lastLines(console: string): string {
  return readFileSync(console, 'utf8').trimEnd().split(/\r?\n/).slice(-5).join(' | ');
}
