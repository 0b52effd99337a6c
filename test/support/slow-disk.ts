// A slow disk under a running process: strace holds up each fsync and fdatasync of all its threads in front of the
// kernel, as a disk does that takes its time. The process and its files are otherwise as they are. Linux, root, strace.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { lacking, skipped } from './needs.ts';

/** Whether strace may look at a process that it did not start. Kernels that let only root do so are common. */
export function noStrace(): string | undefined {
  const lacks = lacking('Linux', 'strace');
  if (lacks !== undefined) return lacks;
  const asleep = spawn('sleep', ['1'], { stdio: 'ignore' });
  if (spawnSync('strace', ['-qq', '-o', '/dev/null', '-p', String(asleep.pid)]).status === 0) return undefined;
  return lacking('root') ?? skipped('a kernel that lets root trace processes');
}

export interface SlowDisk {
  /** How often the process waited so far. */
  delayed(): number;
  /** The disk is as fast as it was. */
  end(): Promise<void>;
}

/** Resolves when it is in force. */
export async function slowDisk(pid: number, delayMs: number): Promise<SlowDisk> {
  const calls = 'fsync,fdatasync';
  const args = ['-f', '-p', String(pid), '-e', `trace=${calls}`, '-e', `inject=${calls}:delay_enter=${delayMs * 1000}`];
  const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(strace, 'exit');
  const { promise: attached, resolve, reject } = Promise.withResolvers<void>();
  let text = '';
  strace.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    if (/Process \d+ attached/.test(text)) resolve();
  });
  void ended.then(() => reject(new Error(`strace ended: ${text.slice(0, 500)}`)));
  await attached;
  return {
    delayed: () => text.match(/\(DELAYED\)/g)?.length ?? 0,
    async end() {
      strace.kill('SIGTERM'); // it detaches
      await ended;
    },
  };
}
