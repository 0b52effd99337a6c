// The Go client of `make bench-peers` (lab/bench/peers/client), as a process that runs one load after another, and the
// programs in Go that the comparison needs. Nothing here says what a figure means.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Certificates } from './certificates.ts';

const ROOT = join(import.meta.dirname, '../../..');
export const PROGRAMS = join(ROOT, 'build/peers');

export type ClientOptions = {
  readonly Server: 'dirk' | 'strongroom';
  readonly Port?: number;
  readonly URL?: string;
  readonly Token?: string;
  readonly PublicKeys: readonly string[];
  readonly Parallel: number;
};

export interface PeerLoad {
  readonly Do: 'burst' | 'distinct' | 'batch' | 'lone' | 'block' | 'randao' | 'selection' | 'registration';
  readonly Epoch: number;
  readonly Parallel: number;
  readonly Keys: number;
  readonly Group?: number;
  readonly Batch?: number;
  readonly Blocks?: number;
}

export interface PeerResult {
  readonly Requests: number;
  readonly Failed: number;
  readonly Signed: number;
  readonly Seconds: number;
  readonly P50: number;
  readonly P99: number;
  readonly P999: number;
  readonly Longest: number;
  readonly CPUSeconds: number;
  readonly Failure: string;
}

/** Which Go is here; undefined: none. */
export function goVersion(): string | undefined {
  try {
    return execFileSync('go', ['version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** Builds a program of a module of bench/peers, whose go.sum pins every source. */
export function buildGo(module: 'dirk' | 'client', what: string): string {
  mkdirSync(PROGRAMS, { recursive: true });
  const program = join(PROGRAMS, module);
  execFileSync('go', ['build', '-mod=readonly', '-buildvcs=false', '-trimpath', '-o', program, what], {
    cwd: join(import.meta.dirname, module),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return program;
}

/** Writes the wallet that Dirk reads. */
export function writeWallet(program: string, folder: string, passphrase: string, secrets: readonly string[]): void {
  const options = { Server: 'wallet', Folder: folder, Passphrase: passphrase, Secrets: secrets };
  execFileSync(program, [], { input: `${JSON.stringify(options)}\n`, stdio: ['pipe', 'inherit', 'inherit'] });
}

export class PeerClient {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(process: ChildProcess, lines: AsyncIterator<string>) {
    this.#process = process;
    this.#lines = lines;
  }

  static async open(program: string, { client, authority }: Certificates, options: ClientOptions): Promise<PeerClient> {
    const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const opened = new PeerClient(child, lines);
    await opened.#ask({ ...options, Authority: authority, Certificate: client.cert, Key: client.key });
    return opened;
  }

  run(load: PeerLoad): Promise<PeerResult> {
    return this.#ask(load) as Promise<PeerResult>;
  }

  /** Every signature of the last load. */
  verify(): Promise<PeerResult> {
    return this.#ask({ Do: 'verify' }) as Promise<PeerResult>;
  }

  stop(): void {
    this.#process.stdin?.end();
  }

  async #ask(message: object): Promise<unknown> {
    this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error('the client has ended: what it wrote is above');
    return JSON.parse(value);
  }
}
