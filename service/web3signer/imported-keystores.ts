// Keystores that are imported over the Key Manager API stay, as with Web3Signer, which writes them and their passwords
// into --key-store-path. Here they are in a folder of their own in it, with the passwords encrypted under a secret that
// lies in the same folder: who reads the folder has the keys, as there. This file never makes a secret where keystores
// need one that is missing, and always uses the secret that is there.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { syncFolderNow } from '../../common/command-line/sync-folder.ts';
import type { Violation } from '../../common/command-line/violations.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { variableOf } from '../config/option-names.ts';
import type { Web3SignerEnvironment } from './environment.ts';
import { type GivenOptions, isOn } from './given.ts';
import type { Translation } from './translation.ts';

export const KEY_MANAGER = 'key-manager-api-enabled';
export const SKIP_STORAGE = 'Xkey-manager-skip-keystore-storage';
const IMPORTED_FOLDER = 'imported-keystores';
const SECRET = 'secret';
const SECRET_BYTES = 32;
const OPTIONS = ['key_sources.memory.persist_dir', 'key_sources.memory.persist_secret'] as const;

interface Surroundings {
  readonly folder: string;
  readonly env: Web3SignerEnvironment;
  /** A signer is about to start: what is missing may be made. */
  readonly starts: boolean;
}

/** Sets where imported keystores are kept, or says that they are not, or refuses. */
export function settleImported(to: Translation, given: GivenOptions, { folder, env, starts }: Surroundings): void {
  if (OPTIONS.some((option) => env[variableOf(option)] !== undefined)) return;
  const store = given.get('key-store-path');
  const origin = store?.origin ?? 'default';
  const imported = join(resolve(folder, store?.value ?? '.'), IMPORTED_FOLDER);
  const secret = join(imported, SECRET);
  const names = namesIn(imported);
  if ('code' in names) {
    to.refuse({ path: '--key-store-path', ...unreadable(imported, names.code), origin });
  } else if (names.includes(SECRET)) {
    keepIn(imported, origin, to);
    if (isOn(given, SKIP_STORAGE)) to.warn(`--${SKIP_STORAGE}`, notSkipped(imported));
  } else if (names.some((name) => name.endsWith('.json'))) {
    to.refuse({ path: '--key-store-path', ...withoutSecret(secret), origin });
  } else if (isOn(given, KEY_MANAGER) && !isOn(given, SKIP_STORAGE)) {
    const hindrance = starts ? makeSecret(imported, secret) : notYet(imported, secret);
    if (hindrance === undefined) keepIn(imported, origin, to);
    else to.warn(`--${KEY_MANAGER}`, hindrance);
  }
}

function keepIn(folder: string, origin: string, to: Translation): void {
  const [dirOption, secretOption] = OPTIONS;
  to.set(dirOption, folder, origin);
  to.set(secretOption, `file:${join(folder, SECRET)}`, origin);
}

/** None when there is no such folder. */
function namesIn(folder: string): readonly string[] | { readonly code: string } {
  try {
    return readdirSync(folder);
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' ? [] : { code };
  }
}

function codeOf(error: unknown): string {
  return errorCode(error) ?? 'unreadable';
}

/** Durable before the first keystore is, which needs it. @returns what it means that it cannot be had */
function makeSecret(folder: string, secret: string): string | undefined {
  const partial = `${secret}.new`;
  try {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    const file = openSync(partial, 'w', 0o600);
    try {
      writeSync(file, `${randomBytes(SECRET_BYTES).toString('hex')}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    linkSync(partial, secret); // never over one that another start has made meanwhile
    unlinkSync(partial);
    syncFolderNow(folder);
    syncFolderNow(dirname(folder));
    return undefined;
  } catch (error) {
    return inMemory(folder, codeOf(error));
  }
}

function withoutSecret(secret: string): Pick<Violation, 'problem' | 'remedy'> {
  return {
    problem: `has imported keystores whose secret is gone: ${secret}`,
    remedy: 'put the file back; without it, move that folder away and import the keystores again',
  };
}

function unreadable(folder: string, code: string): Pick<Violation, 'problem' | 'remedy'> {
  return {
    problem: `has imported keystores that cannot be read: ${folder} (${code})`,
    remedy: 'give the folder to the user of the signer',
  };
}

function notSkipped(folder: string): string {
  return `is not honoured: ${folder} is there, and what was imported into it is read, added to and deleted from`;
}

function inMemory(folder: string, code: string): string {
  return (
    `mounts the Key Manager API, and keystores that are imported over it are kept in memory: ${folder} cannot be made ` +
    `(${code}). After a restart they are gone, until they are imported again. Make --key-store-path writable`
  );
}

function notYet(folder: string, secret: string): string {
  return (
    'keeps imported keystores in memory in this configuration. To keep them on disk: ' +
    `\`mkdir -m 700 ${folder} && (umask 077; openssl rand -hex 32 > ${secret})\`, then key_sources.memory with ` +
    `persist_dir: ${folder} and persist_secret: file:${secret}`
  );
}
