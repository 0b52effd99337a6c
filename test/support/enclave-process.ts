// The enclave's program in a process of its own, whose endpoints are the test's: it is stopped, killed and read from
// here. Its NSM is one that the test holds.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import type { CompiledImage } from '../../enclave/compiled.ts';
import type { NsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import { cleanEnvironment, tracked } from '../../rehearsal/signer.ts';
import type { EgressEndpoint } from '../../signer/api/egress.ts';
import type { NamedAuthorities } from '../../signer/tee/authorities.ts';
import { LONGEST_WAIT_MS } from './patience.ts';

/** What the child process reads. */
export interface ProgramImage {
  readonly image: CompiledImage;
  /** Where every alias listens: the declared 443 is not everybody's to have. */
  readonly aliasPort: number;
  readonly patienceMs: number;
  /** The root of the NSM's documents. */
  readonly rootSha256: string;
}

const PROGRAM = join(import.meta.dirname, 'enclave-program.ts');
const PINNED_NODE = join(import.meta.dirname, '../../bin/pinned-node');
export const ALIAS_PORT = 24_443;
/** Whoever waits for a start that finds nothing at its parent gives less. */
const PATIENCE_MS = LONGEST_WAIT_MS;

export interface EnclaveProcess {
  /** The NSM that this start has: its registers, as a document would show them. */
  readonly nsm: NsmEmulator;
  /** What the console shows. */
  console(): string;
  readonly exited: Promise<number | null>;
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

export interface StartOptions {
  /** Into the image, instead of having it fetched. */
  readonly baked?: string;
  readonly nsm?: NsmEmulator;
  /** Compiled into the image; that of the world unless given. */
  readonly ceremony?: CeremonyBlock;
  readonly patienceMs?: number;
  /** Compiled into the image; then the endpoints are called over TLS, unless they are plain all the same. */
  readonly authorities?: NamedAuthorities;
  readonly isAwsPlain?: boolean;
}

export function startProgram(
  folder: string,
  endpoints: readonly EgressEndpoint[],
  {
    ceremony,
    nsm,
    baked,
    authorities,
    isAwsPlain = authorities === undefined,
    patienceMs = PATIENCE_MS,
  }: StartOptions & { ceremony: CeremonyBlock; nsm: NsmEmulator },
): EnclaveProcess {
  const program: ProgramImage = {
    image: { ceremony, configuration: baked === undefined ? 'fetched' : 'baked', authorities: authorities ?? {} },
    aliasPort: ALIAS_PORT,
    patienceMs,
    rootSha256: nsm.rootFingerprint,
  };
  writeFileSync(join(folder, 'image.json'), JSON.stringify(program));
  if (baked !== undefined) writeFileSync(join(folder, 'baked.yaml'), baked);
  const scheme = isAwsPlain ? 'http' : 'https';
  const [dynamodb, kms] = endpoints.map(({ loopback }) => `${scheme}://${loopback}:${ALIAS_PORT}`);
  const child = spawn(PINNED_NODE, [PROGRAM, folder], {
    // No region and no credentials: the enclave knows neither. Only where the test's endpoints are.
    env: { ...cleanEnvironment(), AWS_ENDPOINT_URL_DYNAMODB: dynamodb, AWS_ENDPOINT_URL_KMS: kms },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return processOf(tracked(child), nsm);
}

function processOf(child: ChildProcess, nsm: NsmEmulator): EnclaveProcess {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (part) => (text += part));
  const exited = (once(child, 'close') as Promise<[number | null]>).then(([code]) => code);
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return exited;
  };
  return {
    nsm,
    console: () => text,
    exited,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
}
