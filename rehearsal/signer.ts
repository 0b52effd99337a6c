// Runs the real program as a process of its own, on ports of its own, and stops it by process id. What a user would see
// (log, exit code, files) is what a test gets.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { devNull, tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** Waited for only so that it is named when it does not come, before the test's own limit ends it. */
const LOG_WAIT_MS = 800_000;
const PROGRAM = join(import.meta.dirname, '../bin/strongroom');

export interface RunningSigner {
  readonly url: string;
  readonly metricsUrl: string;
  readonly tlsUrl: string | undefined;
  readonly folder: string;
  readonly pid: number;
  readonly log: readonly Record<string, unknown>[];
  output(): string;
  /** The first log line with this message and these fields, once there is one. */
  logged(message: string, fields?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  readonly ended: Promise<string>;
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

export interface SignerOptions {
  readonly config?: Record<string, unknown>;
  readonly args?: readonly string[];
  /** In place of `server -c FILE`: the configuration is then whatever these arguments and the environment say. */
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly folder?: string;
  readonly program?: readonly [string, ...string[]];
  readonly waitFor?: 'ready' | 'listening';
  readonly logWaitMs?: number;
  /** False: once it is ready, its log is read and thrown away, for who measures what it does. */
  readonly keepsLog?: boolean;
}

export async function startSigner(options: SignerOptions = {}): Promise<RunningSigner> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'strongroom-test-'));
  const child = spawnSigner(folder, options);
  const log: Record<string, unknown>[] = [];
  const watchers = new Set<() => void>();
  const collected = collect(child, log, watchers);
  /** The process ended, and all that it wrote was read: later than its exit. */
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  let hasClosed = false;

  const logged: RunningSigner['logged'] = (message, fields = {}) =>
    new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        watchers.delete(look);
        settle();
      };
      const look = (): void => {
        const line = log.find((entry) => says(entry, message) && matches(entry, fields));
        if (line !== undefined) finish(() => resolve(line));
        else if (hasClosed)
          finish(() => reject(new Error(`exit ${child.exitCode ?? child.signalCode}: ${collected.text()}`)));
      };
      const timer = setTimeout(
        () => finish(() => reject(new Error(`no "${message}" in the log: ${collected.text()}`))),
        options.logWaitMs ?? LOG_WAIT_MS,
      );
      watchers.add(look);
      look();
    });
  void closed.then(() => {
    hasClosed = true;
    for (const look of watchers) look();
  });

  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const [code] = await closed;
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    return code;
  };
  try {
    await (options.waitFor === 'listening' ? logged('listening', { listener: 'http' }) : logged('ready'));
  } catch (error) {
    await kill(child); // no caller has it yet
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  if (options.keepsLog === false) collected.end();
  const portOf = (listener: string): number | undefined =>
    log.find((line) => line['msg'] === 'listening' && line['listener'] === listener)?.['port'] as number | undefined;
  const tlsPort = portOf('tls');
  return {
    url: `http://127.0.0.1:${portOf('http')}`,
    metricsUrl: `http://127.0.0.1:${portOf('metrics')}/metrics`,
    tlsUrl: tlsPort === undefined ? undefined : `https://127.0.0.1:${tlsPort}`,
    folder,
    pid: child.pid ?? 0,
    log,
    output: collected.text,
    ended: closed.then(([code, signal]) => signal ?? `exit code ${code}`),
    logged,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
}

/** Signers and jumps of a rehearsal believe the clock of a machine that may have no time service. */
const TRUSTED_CLOCK = { SVC_ANTI_SLASHING__UNSAFE_UNCONFIRMED_CLOCK: 'true' };

export async function runStrongroom(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string; readonly input?: string } = {},
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const own = { ...cleanEnvironment(), ...(args[0] === 'slashing' ? TRUSTED_CLOCK : {}), ...options.env };
  const child = tracked(spawn(PROGRAM, args, { env: own, cwd: options.cwd }));
  const chunks = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (chunks.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (chunks.stderr += chunk));
  child.stdin.end(options.input ?? '');
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...chunks };
}

/** The tests' own environment without settings of a signer, and without any way to an AWS account. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SVC|AWS|WEB3SIGNER)_/.test(name))),
    AWS_CONFIG_FILE: devNull,
    AWS_SHARED_CREDENTIALS_FILE: devNull,
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}

/** `ready, and 1 of 2 keys could not be loaded` is ready, too. */
function says({ msg }: Record<string, unknown>, message: string): boolean {
  return msg === message || (typeof msg === 'string' && msg.startsWith(`${message}, and `));
}

function matches(entry: Record<string, unknown>, fields: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(fields).every(([name, value]) => entry[name] === value);
}

function spawnSigner(folder: string, options: SignerOptions): ChildProcess {
  const config = {
    anti_slashing: { path: join(folder, 'slashing_protection.sqlite') },
    ...options.config,
    server: {
      listen_address: '127.0.0.1',
      listen_port: 0,
      ...(options.config?.['server'] as object | undefined),
    },
    metrics: { listen_address: '127.0.0.1', listen_port: 0, ...(options.config?.['metrics'] as object | undefined) },
    logging: { format: 'json', ...(options.config?.['logging'] as object | undefined) },
  };
  const file = join(folder, 'strongroom.yaml');
  writeFileSync(file, stringify(config, { aliasDuplicateObjects: false }));
  const args = [...(options.command ?? ['server', '-c', file]), ...(options.args ?? [])];
  const [program, ...first] = options.program ?? [PROGRAM];
  const child = spawn(program, [...first, ...args], {
    cwd: folder,
    env: { ...cleanEnvironment(), ...TRUSTED_CLOCK, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return tracked(child);
}

interface CollectedLog {
  text(): string;
  end(): void;
}

function collect(child: ChildProcess, log: Record<string, unknown>[], watchers: Set<() => void>): CollectedLog {
  let text = '';
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  for (const stream of streams) {
    /** The beginning of a line. A process that is killed may leave one without its end, which is no log line. */
    let begun = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const lines = (begun + chunk).split('\n');
      begun = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('{')) log.push(JSON.parse(line) as Record<string, unknown>);
      for (const look of watchers) look();
    });
  }
  return {
    text: () => text,
    end() {
      for (const stream of streams) stream.removeAllListeners('data').resume();
    },
  };
}

// The processes that a test file has started: what it starts it ends, whatever fails
// (test/support/end-what-was-started.ts).

const children = new Set<ChildProcess>();

export function tracked<T extends ChildProcess>(child: T): T {
  children.add(child);
  child.once('exit', () => children.delete(child)).once('error', () => children.delete(child));
  return child;
}

export function runningChildren(): readonly ChildProcess[] {
  return [...children];
}

export async function killChildren(): Promise<void> {
  await Promise.all(runningChildren().map(kill));
}

export async function kill(child: ChildProcess): Promise<void> {
  if (!children.has(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

// The process ends in another way, by an exception that was not caught.
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
