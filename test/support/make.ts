// Runs a target of the Makefile as a user does, to its end.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { cleanEnvironment, tracked } from '../../rehearsal/signer.ts';

const ROOT = join(import.meta.dirname, '../..');

export async function runMake(
  ...words: readonly string[]
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = tracked(spawn('make', ['--no-print-directory', ...words], { cwd: ROOT, env: cleanEnvironment() }));
  const chunks = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (chunks.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (chunks.stderr += chunk));
  child.stdin.end();
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...chunks };
}
