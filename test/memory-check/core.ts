// The core of a signer, as the kernel writes it: resident memory only, without what the signer left out by
// MADV_DONTDUMP. A signer lets nobody write its core, and what it gave up no root can give back. So it starts with its
// limit raised, and with a library before its own in which those two calls do nothing (dumpable.c). Linux, gcc.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningSigner, SignerOptions } from '../../rehearsal/signer.ts';

const HERE = import.meta.dirname;
const PROGRAM = join(HERE, '../../bin/strongroom');

/** @returns what starts a signer whose core can be written, in this folder */
export function dumpedProgram(folder: string): NonNullable<SignerOptions['program']> {
  const pattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim();
  if (/[/|]/.test(pattern)) throw new Error(`core_pattern is ${pattern}: a file in the working folder is searched`);
  const library = join(folder, 'dumpable.so');
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, join(HERE, 'dumpable.c')], { stdio: 'pipe' });
  const script = 'ulimit -c unlimited; export LD_PRELOAD="$1"; shift; exec "$@"';
  return ['/bin/sh', '-c', script, 'sh', library, PROGRAM];
}

/** Ends the signer. */
export async function coreOf(signer: RunningSigner, folder: string): Promise<string> {
  process.kill(signer.pid, 'SIGABRT');
  await signer.ended;
  const name = readdirSync(folder).find((one) => /^core(\.\d+)?$/.test(one));
  if (name === undefined) throw new Error('the kernel wrote no core');
  return join(folder, name);
}
