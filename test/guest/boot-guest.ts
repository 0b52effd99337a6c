// Boots a kernel and ramdisks in QEMU, in software (TCG): no KVM, no network, no disk. What the guest writes on its
// console comes line by line and is kept in a file. A guest that does not end in its time is stopped. It is the one
// place where tests may open a vsock.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { countedMs, waitedForCoreMs } from './core-time.ts';

export interface GuestOptions {
  readonly kernel: string;
  /** Unpacked one over the other, in this order; each a whole cpio archive, compressed or not. */
  readonly ramdisks: readonly Uint8Array[];
  /** After what the guest needs anyway. */
  readonly cmdline?: string;
  readonly memoryMiB?: number;
  /** Counted in the time in which the machine let it run (core-time.ts). */
  readonly timeLimitMs?: number;
  readonly console: string;
  readonly onLine?: (line: string) => void;
}

export interface GuestEnd {
  readonly inTime: boolean;
  /** QEMU's; null when it was stopped. */
  readonly exitCode: number | null;
  readonly seconds: number;
}

export const DEFAULT_MEMORY_MIB = 1024;
export const DEFAULT_TIME_LIMIT_MS = 180_000;
const MAX_CONSOLE_BYTES = 64 * 1024 * 1024;
const MAX_CPUS = 2;
/** Linux 6.12 does not get far with QEMU 7.2's cmpxchg16b, and does without. */
const CPU = 'max,-cx16';
const LOOK_INTERVAL_MS = 1000;

/** Resolves when the guest has ended, whatever came of it. */
export async function bootGuest(options: GuestOptions): Promise<GuestEnd> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-guest-'));
  mkdirSync(dirname(options.console), { recursive: true });
  const startedAt = performance.now();
  try {
    const ramdisk = join(folder, 'ramdisk');
    writeFileSync(ramdisk, Buffer.concat(options.ramdisks));
    const machine = spawn('qemu-system-x86_64', qemuArguments(options, ramdisk), { stdio: ['ignore', 'pipe', 'pipe'] });
    const { inTime, exitCode } = await watchMachine(machine, options);
    return { inTime, exitCode, seconds: (performance.now() - startedAt) / 1000 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function qemuArguments(
  { kernel, cmdline = '', memoryMiB = DEFAULT_MEMORY_MIB }: GuestOptions,
  ramdisk: string,
): string[] {
  // microvm has no PCI and no firmware to wait for. A triple fault (reboot=t) is how a guest without ACPI ends.
  // The kernel tests its ciphers while it boots, and QEMU 7.2 has been seen to hang in that for good.
  const given = `console=ttyS0 quiet panic=-1 reboot=t cryptomgr.notests ${timestampCounter()} ${cmdline}`.trim();
  return [
    ...['-machine', 'microvm,accel=tcg', '-cpu', CPU, '-smp', String(Math.min(MAX_CPUS, availableParallelism()))],
    ...['-m', String(memoryMiB), '-nodefaults', '-no-user-config', '-nic', 'none', '-display', 'none', '-no-reboot'],
    ...['-serial', 'stdio', '-kernel', kernel, '-initrd', ramdisk, '-append', given],
  ];
}

/**
 * Without it a kernel under TCG spends seconds on measuring the counter, and may measure nonsense on a loaded machine.
 */
export function timestampCounter(): string {
  const megahertz = /^cpu MHz\s*:\s*([\d.]+)/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1];
  return `tsc_early_khz=${Math.round(Number(megahertz ?? 2000) * 1000)}`;
}

/** Until the machine has ended, or is stopped because it took too long or said too much. */
export async function watchMachine(
  machine: ChildProcess,
  { console, onLine, timeLimitMs = DEFAULT_TIME_LIMIT_MS }: Pick<GuestOptions, 'console' | 'onLine' | 'timeLimitMs'>,
): Promise<{ inTime: boolean; exitCode: number | null }> {
  const log = createWriteStream(console);
  let [inTime, bytes] = [true, 0];
  const kill = (): void => void machine.kill('SIGKILL');
  const stop = (): void => {
    inTime = false;
    kill();
  };
  process.once('exit', kill);
  const startedAt = performance.now();
  const timer = setInterval(() => {
    if (countedMs(performance.now() - startedAt, waitedForCoreMs(machine.pid)) > timeLimitMs) stop();
  }, LOOK_INTERVAL_MS);
  for (const stream of [machine.stdout, machine.stderr]) {
    if (stream === null) continue;
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_CONSOLE_BYTES) stop();
      else log.write(chunk);
    });
    createInterface({ input: stream }).on('line', (line) => onLine?.(line.replace(/\r$/, '')));
  }
  try {
    const [exitCode] = (await once(machine, 'close')) as [number | null];
    return { inTime, exitCode };
  } finally {
    clearInterval(timer);
    process.off('exit', kill);
    log.end();
    await once(log, 'finish');
  }
}
