// A parent proxy in a process of its own, for what a process shows: its memory, its file descriptors, its signals and
// exit codes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { tracked } from '../../rehearsal/signer.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { type ProxyTestOptions, proxyYaml } from './parent-proxy.ts';
import { unixTransport } from './unix-transport.ts';

export interface ProxyProcess {
  readonly child: ChildProcess;
  readonly directory: string;
  readonly enclave: Transport;
  readonly ingressPorts: Readonly<Record<'tls' | 'probes' | 'metrics', number>>;
  readonly lines: readonly string[];
  fileDescriptors(): number;
  residentBytes(): number;
  /** What the program still refers to, after a forced collection: its JavaScript heap, and buffers beside it. */
  heldBytes(): Promise<number>;
  /** @returns the exit code */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface ProcessOptions extends ProxyTestOptions {
  readonly maxFileDescriptors?: number;
}

const PROGRAM = fileURLToPath(new URL('./parent-proxy-program.ts', import.meta.url));

export async function startProxyProcess(options: ProcessOptions = {}): Promise<ProxyProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-proxy-'));
  const file = join(directory, 'config.yaml');
  writeFileSync(file, proxyYaml(options));
  const { maxFileDescriptors = 16_384 } = options;
  const command = `ulimit -n ${maxFileDescriptors} && exec "$0" "$@"`;
  const child = spawn('sh', ['-c', command, process.execPath, '--expose-gc', PROGRAM, directory, '-c', file], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, AWS_EC2_METADATA_DISABLED: 'true' },
  });
  tracked(child);
  const lines: string[] = [];
  const ready = Promise.withResolvers<void>();
  const { stdout } = child;
  if (stdout === null) throw new Error('standard output is a pipe');
  createInterface({ input: stdout }).on('line', (line) => {
    lines.push(line);
    if (line.includes('"msg":"ready"')) ready.resolve();
  });
  if (typeof options.logs?.['output'] === 'string') {
    const log = options.logs['output'];
    while (!existsSync(log) || !readFileSync(log, 'utf8').includes('"msg":"ready"')) await pause(5);
    lines.push(...readFileSync(log, 'utf8').split('\n'));
    ready.resolve();
  }
  child.once('exit', (code) => ready.reject(new Error(`the parent proxy ended with ${code}: ${lines.join('\n')}`)));
  await ready.promise;
  return {
    child,
    directory,
    enclave: unixTransport(directory, 'enclave'),
    ingressPorts: { tls: portOf(lines, 'tls'), probes: portOf(lines, 'probes'), metrics: portOf(lines, 'metrics') },
    lines,
    fileDescriptors: () => readdirSync(`/proc/${child.pid}/fd`).length,
    residentBytes: () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024,
    async heldBytes() {
      child.send('held bytes');
      const [bytes] = (await once(child, 'message')) as [number];
      return bytes;
    },
    async stop(signal = 'SIGTERM') {
      const exited = child.exitCode === null ? once(child, 'exit') : undefined;
      child.kill(signal);
      await exited;
      rmSync(directory, { recursive: true });
      return child.exitCode;
    },
  };
}

function portOf(lines: readonly string[], service: string): number {
  const line = lines.find((each) => each.includes(`"service":"${service}","listen"`));
  return Number(/:(\d+)"/.exec(line?.slice(line.indexOf('"listen"')) ?? '')?.[1]);
}
