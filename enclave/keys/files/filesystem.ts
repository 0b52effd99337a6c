// Loads the key directories of `key_sources.filesystem`: raw keys first, because they are quick, then keystores, decrypted in worker
// threads. Every key can sign as soon as it is loaded. A bad file is logged and counted and never stops the others; a directory
// that is not there is a mistake in the configuration and stops everything.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../observe/clock.ts';
import type { Log } from '../../../observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { parseKeystoreJson } from '../keystores/keystore.ts';
import type { KeystorePool } from '../keystores/pool.ts';
import type { KeyRefusal, KeyStore } from '../store.ts';
import { type KeyDescriptor, MAXIMUM_DESCRIPTOR_BYTES, parseDescriptors } from './descriptor.ts';
import { type FilesystemLoad, type LoadProgress, LoadReport, type OrderedPlace } from './load-report.ts';
import { readSmallFile } from './small-files.ts';

export interface FilesystemKeysOptions {
  /** Directories; only their own files count, not those of directories in them. */
  readonly paths: readonly string[];
  /** `key_sources.filesystem.raw_load_concurrency`: descriptor files read at once. */
  readonly rawLoadConcurrency: number;
}

export interface FilesystemKeysParts {
  readonly store: KeyStore;
  readonly pool: KeystorePool;
  readonly log: Log;
  readonly clock: Clock;
  /** At most every PROGRESS_INTERVAL_SECONDS. */
  readonly onProgress?: (progress: LoadProgress) => void;
  /** Stops the load; what is loaded stays. */
  readonly signal?: AbortSignal;
}

export const MAXIMUM_KEYSTORE_BYTES = 64 * 1024;
export const MAXIMUM_PASSWORD_FILE_BYTES = 4 * 1024;

/**
 * Load every key of the directories into the store.
 * @throws Error when a directory cannot be listed (a startup failure), SignerError `sealed` when the store was sealed meanwhile,
 * the signal's reason when stopped
 */
export async function loadFilesystemKeys(
  options: FilesystemKeysOptions,
  parts: FilesystemKeysParts,
): Promise<FilesystemLoad> {
  const files = await listDescriptorFiles(options.paths);
  const report = new LoadReport(parts);
  try {
    const keystores = await loadRawKeys(files, options, parts, report);
    report.expectKeystores(keystores.length);
    // More lanes than workers: the next keystore is read while the workers are busy.
    const lanes = parts.pool.concurrency + 2;
    await forEach(keystores, lanes, parts.signal, (keystore) => loadKeystore(keystore, parts, report));
  } finally {
    await parts.pool.endIdleWorkers();
  }
  return report.finish();
}

type KeystorePlace = OrderedPlace & Extract<KeyDescriptor, { type: 'file-keystore' }>;

/** Hidden files are not matched by `*.yaml`, as in a shell. */
const DESCRIPTOR_NAME = /^[^.].*\.ya?ml$/i;

async function listDescriptorFiles(directories: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const directory of directories) {
    const names = await readdir(directory).catch((cause: unknown) => {
      throw new Error(`key_sources.filesystem.paths: the directory ${directory} cannot be read`, { cause });
    });
    for (const name of names.filter((name) => DESCRIPTOR_NAME.test(name)).sort()) files.push(join(directory, name));
  }
  return files;
}

/** Reads every descriptor, loads the raw keys, and answers the keystores, which are still to be loaded, in order. */
async function loadRawKeys(
  files: readonly string[],
  options: FilesystemKeysOptions,
  { store, signal }: FilesystemKeysParts,
  report: LoadReport,
): Promise<KeystorePlace[]> {
  const keystores: KeystorePlace[] = [];
  await forEach([...files.entries()], options.rawLoadConcurrency, signal, async ([order, file]) => {
    for (const { place, descriptor } of await readDescriptors(file, order, report)) {
      if (descriptor.type === 'file-keystore') keystores.push({ ...place, ...descriptor });
      else addKey(place, descriptor.secretKey, undefined, store, report);
      // A file of thousands of documents must not hold up signing: each key costs 0.1 ms of this thread.
      if (place.document > 1) await setImmediate();
    }
  });
  return keystores.sort((a, b) => a.order - b.order);
}

async function readDescriptors(file: string, fileOrder: number, report: LoadReport) {
  const read = await readSmallFile(file, MAXIMUM_DESCRIPTOR_BYTES);
  if ('refused' in read) {
    report.fail({ file, document: 1, order: orderOf(fileOrder, 1) }, read.refused);
    return [];
  }
  const described = parseDescriptors(file, read.content);
  read.content.fill(0);
  const keys: { place: OrderedPlace; descriptor: KeyDescriptor }[] = [];
  for (const key of described) {
    const place = { file, document: key.document, order: orderOf(fileOrder, key.document) };
    if ('refused' in key) report.fail(place, key.refused);
    else keys.push({ place, descriptor: key.descriptor });
  }
  return keys;
}

/** A file of MAXIMUM_DESCRIPTOR_BYTES has fewer documents than bytes. */
function orderOf(fileOrder: number, document: number): number {
  return fileOrder * (MAXIMUM_DESCRIPTOR_BYTES + 1) + document;
}

async function loadKeystore(
  place: KeystorePlace,
  { store, pool }: FilesystemKeysParts,
  report: LoadReport,
): Promise<void> {
  const file = await readSmallFile(place.keystoreFile, MAXIMUM_KEYSTORE_BYTES);
  if ('refused' in file) return report.fail(place, `keystoreFile ${place.keystoreFile}: ${file.refused}`);
  const keystore = parseKeystoreJson(file.content.toString('utf8'));
  if ('refused' in keystore) return report.fail(place, `keystoreFile ${place.keystoreFile}: ${keystore.reason}`);
  const fail = (reason: string): void => {
    // The next start may open it: a deletion of this key must not promise that it is gone.
    if (keystore.publicKey !== undefined) store.noteInFile(keystore.publicKey);
    report.fail(place, reason);
  };
  const password = await readPassword(place.passwordFile);
  if ('refused' in password) return fail(`keystorePasswordFile ${place.passwordFile}: ${password.refused}`);
  const decrypted = await pool.decrypt(keystore, password.content, 'load');
  if ('refused' in decrypted) return fail(DECRYPTION_REFUSALS[decrypted.refused]);
  addKey(place, decrypted.secretKey, keystore.publicKey, store, report);
}

const DECRYPTION_REFUSALS = {
  wrong_password: 'the password does not open the keystore',
  password_not_utf8: 'the password is not UTF-8',
  too_much_memory: 'its key derivation takes more than half of the memory of this machine',
  decryption_failed: 'its decryption failed on this machine',
} as const;

const ADD_REFUSALS = {
  invalid_secret_key: 'the private key is zero or not below the group order',
  public_key_mismatch: 'the private key does not belong to the public key that the keystore names',
  too_many_keys: 'as many keys are loaded as the signer holds',
} as const satisfies Record<Exclude<KeyRefusal, 'sealed'>, string>;

function addKey(
  place: OrderedPlace,
  secretKey: Uint8Array,
  expectedPublicKey: string | undefined,
  store: KeyStore,
  report: LoadReport,
): void {
  const added = store.add(secretKey, 'filesystem', expectedPublicKey);
  secretKey.fill(0);
  if (added.outcome === 'added') report.load(place, added.key.publicKey);
  else if (added.outcome === 'duplicate') report.duplicate(place, added.key.publicKey);
  else if (added.reason === 'sealed') throw new SignerError('sealed');
  else report.fail(place, ADD_REFUSALS[added.reason]);
}

/** The first line of the file, without its end of line. */
async function readPassword(path: string): Promise<{ readonly content: Uint8Array } | { readonly refused: string }> {
  const file = await readSmallFile(path, MAXIMUM_PASSWORD_FILE_BYTES);
  if ('refused' in file) return file;
  const lineEnd = file.content.indexOf('\n');
  const line = lineEnd === -1 ? file.content : file.content.subarray(0, lineEnd);
  const content = Uint8Array.from(line.at(-1) === 0x0d ? line.subarray(0, -1) : line);
  file.content.fill(0);
  return content.length > 0 ? { content } : { refused: 'its first line is empty' };
}

/** Every item, `limit` at once. The first throw stops the others and is thrown when they have stopped. */
async function forEach<T>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal | undefined,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    try {
      for (let item = items[next++]; item !== undefined; item = items[next++]) {
        signal?.throwIfAborted();
        await work(item);
      }
    } finally {
      // Reached by whoever comes to the end first, or by a throw.
      next = items.length;
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, lane));
  for (const lane of ended) if (lane.status === 'rejected') throw lane.reason;
}
