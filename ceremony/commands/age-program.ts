// Runs the program age for what only it opens: identities under a passphrase, or of its plugins. It asks on the
// terminal itself; this program never sees a passphrase. Nothing is written to a file.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import type { Decrypted } from '../age-identity.ts';
import { type CeremonyTerminal, CommandError } from './command.ts';

const PROGRAM = 'age';
const MAX_PLAINTEXT_BYTES = 64 * 1024;
const MAX_SAID_CHARACTERS = 16 * 1024;

export interface AgeIdentityFile {
  readonly path: string;
  readonly kind: string;
  readonly plugins: readonly string[];
}

/** @throws CommandError when age or a plugin is missing, and when age fails for another reason than the recipient */
export async function openWithAge(
  file: AgeIdentityFile,
  armored: string,
  terminal: CeremonyTerminal,
): Promise<Decrypted> {
  checkPrograms(file, terminal);
  const { code, plaintext, said } = await runAge(file.path, armored, terminal);
  if (code === 0) return { ok: true, plaintext };
  plaintext.fill(0);
  if (said.includes('no identity matched')) return { ok: false, refusal: 'not_for_identity' };
  throw new CommandError(`age did not open it with ${file.path} (exit code ${code}): its reason stands above`);
}

function checkPrograms({ path, kind, plugins }: AgeIdentityFile, terminal: CeremonyTerminal): void {
  const needed = `${path} holds a ${kind}, and only the program age opens with it`;
  if (!isOnPath(PROGRAM, terminal)) {
    throw new CommandError(`${needed}: age is not on the PATH; install it (Debian and Homebrew: the package age)`);
  }
  for (const plugin of plugins) {
    const program = `age-plugin-${plugin}`;
    if (isOnPath(program, terminal)) continue;
    throw new CommandError(`${needed} and its plugin: ${program} is not on the PATH; install it beside age`);
  }
}

function isOnPath(program: string, { env }: CeremonyTerminal): boolean {
  return (env['PATH'] ?? '').split(':').some((folder) => {
    try {
      const path = join(folder === '' ? '.' : folder, program);
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  });
}

interface AgeRun {
  readonly code: number | null;
  readonly plaintext: Buffer;
  readonly said: string;
}

async function runAge(identityFile: string, armored: string, terminal: CeremonyTerminal): Promise<AgeRun> {
  const child = spawn(PROGRAM, ['--decrypt', '--identity', identityFile], {
    env: { ...terminal.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const parts: Buffer[] = [];
  let bytes = 0;
  let said = '';
  child.stdout.on('data', (part: Buffer) => {
    bytes += part.length;
    if (bytes <= MAX_PLAINTEXT_BYTES) parts.push(part);
    else child.kill();
  });
  // What age and its plugins say ("touch the key now") is needed while they wait.
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    terminal.stderr.write(text);
    said = (said + text).slice(0, MAX_SAID_CHARACTERS);
  });
  child.stdin.on('error', () => undefined); // age ended before it read: its exit code says so
  child.stdin.end(armored);
  const [code] = (await once(child, 'close').catch(cannotRun)) as [number | null];
  const plaintext = Buffer.concat(parts);
  for (const part of parts) part.fill(0);
  return { code, plaintext, said };
}

/** It was found on the PATH: another interpreter, another machine's program, no right. */
function cannotRun(error: unknown): never {
  const code = shownErrorCode(error);
  throw new CommandError(`the program age that the PATH names cannot be run (${code}): install it anew`);
}
