// One PostgreSQL server process on a free port of 127.0.0.1. A small shell in between reads our pipe and ends the
// server when this process is gone, however it went: nothing stays behind.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Account, Installation } from './postgres-installation.ts';

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return address.port;
}

// `wait` comes last, so the process id cannot have passed to another process when it is signalled. The end of our pipe
// without a word means that this process is gone: QUIT. Standard error closes with the server's last process.
const GUARD =
  '"$@" </dev/null & server=$!; exec 2>/dev/null; read -r signal || signal=QUIT; kill -$signal $server; wait $server';

export function launch(
  installation: Installation,
  account: Account,
  data: string,
  port: number,
): Promise<ChildProcess> {
  const settings = ['-c', `port=${port}`, '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
  return launchGuarded([join(installation.bin, 'postgres'), '-D', data, ...settings], {
    options: { ...account, cwd: data, env: { ...installation.env, PATH: process.env['PATH'] } },
    isReady: /database system is ready to accept (read-only )?connections/,
  });
}

/** @param isReady in what it says on standard error */
export function launchGuarded(
  command: readonly string[],
  { options, isReady }: { readonly options: SpawnOptions; readonly isReady: RegExp },
): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', GUARD, 'sh', ...command], { ...options, stdio: ['pipe', 'ignore', 'pipe'] });
    const { stdin, stderr } = child;
    if (stdin === null || stderr === null) throw new Error('they are pipes');
    let output = '';
    stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000);
      if (isReady.test(output)) resolve(child);
    });
    stderr.once('end', () => {
      stdin.end();
      reject(new Error(`${command[0]} ended at its start:\n${output}`));
    });
    child.once('error', reject);
  });
}

export function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}
