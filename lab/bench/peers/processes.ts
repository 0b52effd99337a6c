// What a server's processes have used so far, from /proc: Dirk and strongroom are one process, PostgreSQL is many that
// share memory. And how often they made data durable, by strace.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts process time in hundredths of a second. */
const CLOCK_TICKS = 100;
/** Flags of open(2) on Linux, in octal as fdinfo has them; O_SYNC contains O_DSYNC. */
const O_DSYNC = 0o10_000;
const SYNCS = ['fsync', 'fdatasync', 'sync_file_range', 'msync', 'syncfs'];
const WRITES = ['write', 'pwrite64', 'writev', 'pwritev', 'pwritev2'];
const ATTACH_MS = 10_000;

/** The process and all that it started. */
export function treeOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statOf(Number(name))?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [pid];
  for (const one of tree) tree.push(...(children.get(one) ?? []));
  return tree;
}

export function parentOf(pid: number): number {
  return Number(statOf(pid)?.[1]);
}

/** User and system time of these processes, and of what they started and have waited for. */
export function cpuSecondsOf(pids: readonly number[]): number {
  const ticks = pids.flatMap((pid) => statOf(pid)?.slice(11, 15).map(Number) ?? []);
  return ticks.reduce((sum, one) => sum + one, 0) / CLOCK_TICKS;
}

/** Resident memory, with shared pages divided among those that share them. */
export function residentBytesOf(pids: readonly number[]): number {
  const sizes = pids.map((pid) => {
    const text = readOrNothing(`/proc/${pid}/smaps_rollup`);
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
  });
  return sizes.reduce((sum, one) => sum + one, 0);
}

/** What was made durable while strace looked. */
export interface Syncs {
  /** Calls of fsync(2) and its kind. */
  readonly syncCalls: number;
  /** Writes on descriptors that were opened with O_DSYNC: each is durable when it returns. */
  readonly syncedWrites: number;
}

/**
 * Counts during a load. The load is not to be timed: strace stops the server at every call that it counts. Undefined
 * when strace is missing or may not attach.
 */
export async function countSyncs(pids: readonly number[], load: () => Promise<unknown>): Promise<Syncs | undefined> {
  const strace = spawn(
    'strace',
    [
      '-f',
      '-qq',
      '-e',
      'signal=none',
      '-e',
      `trace=${[...SYNCS, ...WRITES].join(',')}`,
      ...pids.map((pid) => `-p${pid}`),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const counter = new SyncCounter(pids);
  strace.stderr.setEncoding('utf8').on('data', (text: string) => counter.take(text));
  const ended = once(strace, 'close').catch(() => undefined);
  if (!(await attached(strace, pids))) {
    strace.kill();
    return undefined;
  }
  counter.learnDescriptors();
  await load();
  counter.learnDescriptors();
  strace.kill('SIGINT');
  await ended;
  return counter.counted();
}

/** Until the kernel says of each process that it is traced. */
async function attached(strace: ChildProcess, pids: readonly number[]): Promise<boolean> {
  strace.once('error', () => undefined); // there is none: it has no process id
  const end = performance.now() + ATTACH_MS;
  while (performance.now() < end && strace.pid !== undefined && strace.exitCode === null) {
    if (pids.every((pid) => /^TracerPid:\s+[1-9]/m.test(readOrNothing(`/proc/${pid}/status`)))) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

class SyncCounter {
  readonly #pids: readonly number[];
  /** A descriptor keeps the flags that it was opened with; badger rolls its logs, so they are read twice. */
  readonly #synced = new Set<string>();
  readonly #writes = new Map<string, number>();
  readonly #processes = new Map<string, string>();
  #calls = 0;
  #begun = '';

  constructor(pids: readonly number[]) {
    this.#pids = pids;
  }

  learnDescriptors(): void {
    for (const pid of this.#pids) {
      for (const descriptor of entriesOf(`/proc/${pid}/fdinfo`)) {
        const flags = /^flags:\s+([0-7]+)/m.exec(readOrNothing(`/proc/${pid}/fdinfo/${descriptor}`))?.[1] ?? '0';
        if ((Number.parseInt(flags, 8) & O_DSYNC) !== 0) this.#synced.add(`${pid} ${descriptor}`);
      }
    }
  }

  take(text: string): void {
    const lines = (this.#begun + text).split('\n');
    this.#begun = lines.pop() ?? '';
    for (const line of lines) {
      // `[pid  4711] pwrite64(9, "…` when a call begins; `<... pwrite64 resumed>` is the end of one.
      const [, thread, call, descriptor] = /^(?:\[pid\s+(\d+)\] )?([a-z0-9_]+)\((\d*)/.exec(line) ?? [];
      if (call === undefined || descriptor === undefined) continue;
      if (SYNCS.includes(call)) this.#calls += 1;
      else this.#noteWrite(`${this.#processOf(thread)} ${descriptor}`);
    }
  }

  #noteWrite(descriptor: string): void {
    this.#writes.set(descriptor, (this.#writes.get(descriptor) ?? 0) + 1);
  }

  /** strace names threads, and no thread when there is one alone. */
  #processOf(thread: string | undefined): string {
    if (thread === undefined) return String(this.#pids[0]);
    const known = this.#processes.get(thread);
    if (known !== undefined) return known;
    const process = /^Tgid:\s+(\d+)/m.exec(readOrNothing(`/proc/${thread}/status`))?.[1] ?? thread;
    this.#processes.set(thread, process);
    return process;
  }

  counted(): Syncs {
    const synced = [...this.#writes].filter(([descriptor]) => this.#synced.has(descriptor));
    return { syncCalls: this.#calls, syncedWrites: synced.reduce((sum, [, count]) => sum + count, 0) };
  }
}

function statOf(pid: number): string[] | undefined {
  return readOrNothing(`/proc/${pid}/stat`).split(') ')[1]?.split(' ');
}

/** A process may end between its listing and this. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
