// The vsock of QEMU's nitro-enclave machine: `vhost-device-vsock`, a program in Rust that speaks to the machine by
// vhost-user and to this side by Unix sockets. No vsock is opened on this machine. The guest is one CID, the host is
// CID 2.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cached } from '../cache.ts';
import { GuestUnavailable, isThere, run } from '../tools.ts';

const CRATE = 'vhost-device-vsock';
const VERSION = '0.3.0';
const BUILD_LIMIT_MS = 10 * 60_000;
/** Until its socket is there. */
const START_PAUSE_MS = 20;

/** @returns the program @throws GuestUnavailable */
export function vsockDeviceProgram(): string {
  const folder = cached(CRATE, [VERSION], (into) => {
    if (!isThere('cargo')) throw new GuestUnavailable(`${CRATE} is a Rust crate, and there is no cargo here`);
    const args = ['install', CRATE, '--version', VERSION, '--locked', '--quiet', '--root', into];
    run('cargo', args, { env: { CARGO_TARGET_DIR: join(into, 'target') }, timeoutMs: BUILD_LIMIT_MS });
    rmSync(join(into, 'target'), { recursive: true });
  });
  return join(folder, 'bin', CRATE);
}

export interface VsockDevice {
  readonly socket: string;
  /** What hybrid-transport.ts connects to. */
  readonly unixPath: string;
  readonly child: ChildProcess;
}

/** @param folder with a short path: Unix sockets have 107 bytes */
export async function startVsockDevice(program: string, folder: string, guestCid: number): Promise<VsockDevice> {
  const [socket, unixPath] = [join(folder, 'vhost'), join(folder, 'vsock')];
  const args = ['--guest-cid', String(guestCid), '--socket', socket, '--uds-path', unixPath];
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  process.once('exit', () => void child.kill('SIGKILL'));
  const ended = once(child, 'close').then(([code]) => {
    throw new GuestUnavailable(`${CRATE} ended with ${code}`);
  });
  ended.catch(() => undefined);
  while (!existsSync(socket)) await Promise.race([pause(START_PAUSE_MS), ended]);
  return { socket, unixPath, child };
}
