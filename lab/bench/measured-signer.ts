// A signer under measurement: how it is started on either core, what its process has used so far, and one load on it.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../../test/support/certificates.ts';
import { deployKeyFiles } from '../../test/support/deployment.ts';
import { PORTABLE_PROGRAM } from '../../test/support/portable-program.ts';
import { attestation, rootOf, TEST_TOKEN, type TestKey } from '../../test/support/requests.ts';
import type { Core } from './bars.ts';
import type { LoadPlan, LoadResult } from './load-generator.ts';

/** One committee-sized share of a slot's attesters that one signer holds. */
export const GROUP = 312;
/** Linux counts process time in hundredths of a second. */
const CLOCK_TICKS = 100;

/**
 * @param options.keepsLog its log is needed; else it is thrown away, so that this process does not parse an audit line
 *   for each signature on the signer's cores
 */
export async function startMeasured(
  keys: readonly TestKey[],
  core: Core,
  config: Record<string, unknown> = {},
  { nodeOptions = '', keepsLog = false }: { readonly nodeOptions?: string; readonly keepsLog?: boolean } = {},
): Promise<RunningSigner> {
  const deployment = deployKeyFiles(keys);
  const tls = tlsIn(deployment.folder);
  // What bin/strongroom sets, as far as the environment can: the portable core is started past it.
  const env = {
    NODE_OPTIONS: `--max-semi-space-size=16 --v8-pool-size=0 ${nodeOptions}`.trim(),
    MALLOC_ARENA_MAX: '2',
  };
  return deployment.start({
    config: { tls, ...config },
    ...(core === 'portable' ? { program: PORTABLE_PROGRAM } : {}),
    env,
    keepsLog,
  });
}

/** The options of a TLS listener whose certificate this call makes in the folder. */
export function tlsIn(folder: string) {
  const { cert, key } = makeCertificate(folder, 'bench');
  return { mode: 'file', listen_address: '127.0.0.1', listen_port: 0, file: { cert_path: cert, key_path: key } };
}

export type Load = Pick<LoadPlan, 'requests'> & Partial<LoadPlan>;

/**
 * A process of its own that runs one load after another. It stays for the whole run and is warmed up with the signer: a
 * new one compiles its code on the signer's cores for the first thousands of requests, which then stand in the signer's
 * figures.
 */
export class LoadGenerator {
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess) {
    this.#process = process;
  }

  static async start(): Promise<LoadGenerator> {
    const generator = fork(join(import.meta.dirname, 'load-generator.ts'));
    await once(generator, 'message');
    return new LoadGenerator(generator);
  }

  async run(signer: RunningSigner, load: Load): Promise<LoadResult> {
    const port = Number(new URL((load.tls === true ? signer.tlsUrl : signer.url) ?? '').port);
    this.#process.send({ tls: false, connections: 64, token: TEST_TOKEN, ...load, port } satisfies LoadPlan);
    const [result] = (await once(this.#process, 'message')) as [LoadResult];
    return result;
  }

  stop(): void {
    this.#process.kill();
  }
}

/** Votes of keys, each for an epoch of its own after the last one, so that nothing is a repeat. */
export class Votes {
  readonly #keys: readonly TestKey[];
  #epoch = 1;

  constructor(keys: readonly TestKey[]) {
    this.#keys = keys;
  }

  /** Every key another root. */
  distinct(count = this.#keys.length): LoadPlan['requests'] {
    return this.#each(count, (index) => `0x${index.toString(16).padStart(64, '0')}`);
  }

  /** Groups of keys share their root. */
  slotBursts(count = this.#keys.length): LoadPlan['requests'] {
    return this.#each(count, (index) => rootOf(Math.floor(index / GROUP)));
  }

  /** All keys one root. */
  oneRoot(count = this.#keys.length): LoadPlan['requests'] {
    return this.#each(count, () => rootOf(1));
  }

  /** A request for each group of keys, which share their root. */
  batches(count = this.#keys.length, size = GROUP): LoadPlan['requests'] {
    this.#epoch += 1;
    const target = this.#epoch;
    return Array.from({ length: Math.ceil(count / size) }, (_, group) => ({
      publicKey: undefined,
      body: JSON.stringify({
        identifiers: this.#keys
          .slice(group * size, Math.min(count, (group + 1) * size))
          .map(({ publicKey }) => publicKey),
        signing_request: attestation({ head: rootOf(group), source: target - 1, target }),
      }),
    }));
  }

  #each(count: number, headOf: (index: number) => string): LoadPlan['requests'] {
    this.#epoch += 1;
    const target = this.#epoch;
    return this.#keys.slice(0, count).map(({ publicKey }, index) => ({
      publicKey,
      body: JSON.stringify(attestation({ head: headOf(index), source: target - 1, target })),
    }));
  }
}

/** User and system time of the process, all threads. */
export function cpuSeconds({ pid }: Pick<RunningSigner, 'pid'>): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

/** Commits of the slashing database so far: one fsync each. */
export async function commits(signer: RunningSigner): Promise<number> {
  const text = await (await fetch(signer.metricsUrl)).text();
  return Number(/^svc_slashing_batch_messages_count (\d+)/m.exec(text)?.[1] ?? 0);
}

export function residentBytes({ pid }: RunningSigner): number {
  return statusKibibytes(pid, 'VmRSS') * 1024;
}

/** The most that was ever resident. */
export function peakResidentBytes({ pid }: RunningSigner): number {
  return statusKibibytes(pid, 'VmHWM') * 1024;
}

function statusKibibytes(pid: number, field: string): number {
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
