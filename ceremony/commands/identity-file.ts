// A participant's file of identities, and which program opens with it. No output ever repeats anything of the file.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import { note } from '../../common/command-line/terminal.ts';
import { type Decrypted, decryptWithIdentities, isAgeIdentity } from '../age-identity.ts';
import { CommandError, type Terminal } from './command.ts';
import { readInput } from './input.ts';

const MAX_IDENTITIES = 64;
/** age knows such a file by its first bytes (C2SP age v1, "age-encryption.org/v1", and its armor). */
const ENCRYPTED_FILE = /^(?:age-encryption\.org\/|-----BEGIN AGE ENCRYPTED FILE-----)/;
/** C2SP age-plugin: the name in capitals, then bech32 data. */
const PLUGIN_IDENTITY = /^AGE-PLUGIN-([A-Z0-9+._-]+)-1[02-9AC-HJ-NP-Z]{6,}$/;
const OTHERS_MAY_READ = 0o077;

export interface IdentityFile extends AgeIdentityFile {
  readonly opener: 'strongroom' | 'age';
  readonly kind: 'X25519 identity' | 'passphrase-protected identity' | 'plugin identity';
  readonly identities: readonly string[];
  /** What the file's comments call its recipients: a claim. */
  readonly claimedRecipients: readonly string[];
}

/** @throws CommandError; warns when others than its owner can read the file */
export async function readIdentityFile(path: string, terminal: Terminal): Promise<IdentityFile> {
  const read = identitiesOf(path, (await readInput(path, terminal)).replace(/^\uFEFF/, '')); // of an editor of Windows
  if (path === '-') {
    if (read.opener === 'age') throw new CommandError(`age reads a ${read.kind} from a file: name it in place of -`);
    return read;
  }
  if (((await stat(path)).mode & OTHERS_MAY_READ) !== 0) {
    note(terminal, `strongroom: warning: others than its owner may read or change ${path}: chmod 600 ${path}`);
  }
  return read;
}

/** @returns the plaintext, which is the caller's to wipe @throws CommandError */
export async function openWith(file: IdentityFile, armored: string, terminal: Terminal): Promise<Decrypted> {
  return file.opener === 'strongroom'
    ? decryptWithIdentities(armored, file.identities)
    : openWithAge(file, armored, terminal);
}

function identitiesOf(path: string, text: string): IdentityFile {
  const none = { path, identities: [], plugins: [], claimedRecipients: [] };
  if (ENCRYPTED_FILE.test(text)) return { ...none, opener: 'age', kind: 'passphrase-protected identity' };
  const lines = text.split(/\r?\n/);
  const secrets = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (secrets.length === 0)
    throw new CommandError(
      `${path} holds no identity: it has to hold a line AGE-SECRET-KEY-1…, or be a file of age -p`,
    );
  if (secrets.length > MAX_IDENTITIES)
    throw new CommandError(
      `${path} holds more than ${MAX_IDENTITIES} identities: keep those of this ceremony in a file of their own`,
    );
  const plugins = secrets.flatMap((line) => PLUGIN_IDENTITY.exec(line)?.[1]?.toLowerCase() ?? []);
  if (!secrets.every((line) => isAgeIdentity(line) || PLUGIN_IDENTITY.test(line))) {
    throw new CommandError(
      `${path} has a line that is neither an age X25519 identity (AGE-SECRET-KEY-1…) nor a plugin’s (AGE-PLUGIN-NAME-1…)`,
    );
  }
  const claimedRecipients = lines.flatMap((line) => /^#.*?\b(age1[0-9a-z]{58})\s*$/.exec(line)?.[1] ?? []);
  return plugins.length === 0
    ? { path, opener: 'strongroom', kind: 'X25519 identity', identities: secrets, plugins, claimedRecipients }
    : {
        path,
        opener: 'age',
        kind: 'plugin identity',
        identities: [],
        plugins: [...new Set(plugins)],
        claimedRecipients,
      };
}

// Runs the program age for what only it opens: identities under a passphrase, or of its plugins. It asks on the
// terminal itself; this program never sees a passphrase. Nothing is written to a file.

const PROGRAM = 'age';
const MAX_PLAINTEXT_BYTES = 64 * 1024;
const MAX_SAID_CHARACTERS = 16 * 1024;

interface AgeIdentityFile {
  readonly path: string;
  readonly kind: string;
  readonly plugins: readonly string[];
}

/** @throws CommandError when age or a plugin is missing, and when age fails for another reason than the recipient */
async function openWithAge(file: AgeIdentityFile, armored: string, terminal: Terminal): Promise<Decrypted> {
  checkPrograms(file, terminal);
  const { code, plaintext, said } = await runAge(file.path, armored, terminal);
  if (code === 0) return { ok: true, plaintext };
  plaintext.fill(0);
  if (said.includes('no identity matched')) return { ok: false, refusal: 'not_for_identity' };
  throw new CommandError(`age did not open it with ${file.path} (exit code ${code}): its reason stands above`);
}

function checkPrograms({ path, kind, plugins }: AgeIdentityFile, terminal: Terminal): void {
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

function isOnPath(program: string, { env }: Terminal): boolean {
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

async function runAge(identityFile: string, armored: string, terminal: Terminal): Promise<AgeRun> {
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
