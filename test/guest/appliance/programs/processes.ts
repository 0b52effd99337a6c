// The programs beside the scenario, each a process: the NSM, the parent proxy, the enclave from the image's own init,
// operator commands.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { GUEST } from '../settings.ts';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program of the bundle. Its lines go to `onLine` and, marked with its name, to the console. */
export function start(
  name: string,
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly onLine?: (line: string) => void } = {},
): ChildProcess {
  return watch(
    name,
    spawn(GUEST.node, [`${GUEST.programs}/${name}.js`, ...args], {
      env: { PATH: '/test/bin:/bin', HOME: '/tmp', NO_COLOR: '1', ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
    options.onLine,
  );
}

export async function run(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const child = spawn(GUEST.node, [`${GUEST.programs}/${name}.js`, ...args], {
    env: { PATH: '/test/bin:/bin', HOME: '/tmp', NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout: stdout(), stderr: stderr() };
}

export interface RunningEnclave {
  hasEnded(): boolean;
  terminate(): Promise<void>;
}

/**
 * The image's init as PID 1 of a PID namespace, in the network and the mounts of the guest's own PID 1: the parent's
 * side is not seen there. A reboot ends the namespace, as it ends an enclave.
 */
export function startEnclave(): RunningEnclave {
  const child = watch(
    'enclave',
    spawn('nsenter', ['-t', '1', '-n', '-m', 'unshare', '-m', '-p', '-f', '/init'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    hasEnded: () => hasEnded(child),
    async terminate() {
      for (const pid of childrenOf(child.pid ?? 0)) process.kill(pid, 'SIGKILL');
      await ended;
    },
  };
}

const LINES: string[] = [];

export function shown(text: string): boolean {
  return LINES.some((line) => line.includes(text));
}

export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function childrenOf(pid: number): readonly number[] {
  const written = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return written === '' ? [] : written.split(' ').map(Number);
}

function watch(name: string, child: ChildProcess, onLine?: (line: string) => void): ChildProcess {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      process.stdout.write(`[${name}] ${line}\n`);
      LINES.push(line);
      onLine?.(line);
    });
  }
  return child;
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}
