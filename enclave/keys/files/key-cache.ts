// The keys of keystores that were decrypted once, in one encrypted file (key-cache-file.ts), so that the next start
// does not derive thousands of keys anew (`key_sources.filesystem.cache`). It trusts nothing of the file: what does not
// authenticate, does not fit the keystores that are there, or cannot be read costs time and nothing else. Every key is
// checked against its public key when it is loaded, cached or not.

import { createHash } from 'node:crypto';
import { rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from '../../../formats/error-code.ts';
import type { Log } from '../../../observe/log.ts';
import type { Keystore } from '../keystores/cipher.ts';
import { syncFolder, writeDurably } from './durable-files.ts';
import {
  CACHE_FILE,
  type CacheEntry,
  type CacheFile,
  nameInFile,
  openCache,
  passwordOf,
  SECRET_BYTES,
  sealCache,
} from './key-cache-file.ts';
import { parseJson } from './sealed-bytes.ts';
import { readSmallFile } from './small-files.ts';

/** 500,000 entries of some 220 bytes. */
const MAX_CACHE_BYTES = 2 ** 27;

/** What an entry is bound to, as text. */
export function keystoreName({ uuid, checksum, publicKey }: Keystore): string {
  return [uuid ?? '', Buffer.from(checksum).toString('hex'), publicKey ?? ''].join(' ');
}

/** One look at the folders: what the file had, and what it shall have. Holds secrets until save() or wipe(). */
export class KeyCache {
  readonly #path: string;
  readonly #log: Log;
  readonly #cached = new Map<string, Buffer>();
  readonly #entries = new Map<string, CacheEntry>();
  /** A keystore is there whose secret is not at hand: a new file would be without it. */
  #incomplete = false;

  constructor(path: string, { log }: { readonly log: Log }) {
    this.#path = path;
    this.#log = log;
  }

  /**
   * @param passwords of the keystores that are there, by keystoreName, digested; they are wiped. Asked for when there
   * is a file.
   */
  async open(passwords: () => Promise<ReadonlyMap<string, Buffer>>): Promise<void> {
    const file = await this.#read();
    if (file === undefined) return;
    const names = file.keystores.map(nameInFile);
    const password = this.#passwordFor(names, await passwords());
    if (password === undefined) return;
    try {
      const opened = await this.#unseal(file, password);
      if (opened !== undefined) this.#hold(names, opened);
    } finally {
      password.fill(0);
    }
  }

  /** The digests are wiped. Undefined when the password of a keystore of the file is not there. */
  #passwordFor(names: readonly string[], known: ReadonlyMap<string, Buffer>): Buffer | undefined {
    try {
      const missing = names.filter((name) => !known.has(name)).length;
      if (missing === 0) return passwordOf(names, known);
      this.#log.info({ file: this.#path, missing }, `${DOES_NOT_FIT}: keystores were changed or removed`);
      return undefined;
    } finally {
      for (const digest of known.values()) digest.fill(0);
    }
  }

  /** Copies of the secret keys, which are wiped. */
  #hold(names: readonly string[], opened: Buffer): void {
    try {
      for (const [index, name] of names.entries()) {
        this.#cached.get(name)?.fill(0);
        this.#cached.set(name, Buffer.from(opened.subarray(index * SECRET_BYTES, (index + 1) * SECRET_BYTES)));
      }
    } finally {
      opened.fill(0);
    }
  }

  /** A copy of the secret key, which the caller wipes. */
  take(keystore: Keystore): Uint8Array<ArrayBuffer> | undefined {
    const cached = this.#cached.get(keystoreName(keystore));
    return cached === undefined ? undefined : Uint8Array.from(cached);
  }

  /**
   * The keystore is in the next file.
   * @param passwordDigest taken over
   * @param secretKey copied; that of the file unless given
   */
  keep(keystore: Keystore, passwordDigest: Buffer, secretKey?: Uint8Array): void {
    const name = keystoreName(keystore);
    const secret = secretKey ?? this.#cached.get(name);
    if (secret === undefined) {
      passwordDigest.fill(0);
      this.#incomplete = true;
      return;
    }
    wipeEntry(this.#entries.get(name)); // the same keystore at another place
    this.#entries.set(name, { passwordDigest, secretKey: Buffer.from(secret) });
  }

  /** Write the file when it would say something else. A file that cannot be written costs the next start time. */
  async save(): Promise<void> {
    try {
      const isNews =
        this.#entries.size !== this.#cached.size || ![...this.#entries.keys()].every((name) => this.#cached.has(name));
      if (!isNews || this.#incomplete || this.#entries.size === 0) return;
      await replaceFile(this.#path, JSON.stringify(await sealCache(this.#entries)));
      this.#log.info({ file: this.#path, keystores: this.#entries.size }, 'the key cache is written');
    } catch (error) {
      this.#log.warn({ file: this.#path, error: messageOf(error) }, 'the key cache cannot be written');
    } finally {
      this.wipe();
    }
  }

  wipe(): void {
    for (const secret of this.#cached.values()) secret.fill(0);
    for (const entry of this.#entries.values()) wipeEntry(entry);
    this.#cached.clear();
    this.#entries.clear();
  }

  async #unseal(file: CacheFile, password: Buffer): Promise<Buffer | undefined> {
    try {
      const opened = await openCache(file, Buffer.from(file.sealed, 'base64'), password);
      if (opened !== undefined) return opened;
      this.#log.warn({ file: this.#path }, `${DOES_NOT_FIT}: it is damaged, or of other passwords`);
    } catch (error) {
      // scrypt takes 256 MiB, which the machine may not have now
      this.#log.warn({ file: this.#path, error: messageOf(error) }, DOES_NOT_FIT);
    }
    return undefined;
  }

  async #read(): Promise<CacheFile | undefined> {
    const file = await readSmallFile(this.#path, MAX_CACHE_BYTES);
    if ('refused' in file) {
      if (file.refused !== 'does not exist') this.#log.warn({ file: this.#path, reason: file.refused }, DOES_NOT_FIT);
      return undefined;
    }
    const parsed = CACHE_FILE.safeParse(parseJson(file.content.toString('utf8')));
    if (parsed.success) return parsed.data;
    this.#log.warn({ file: this.#path }, `${DOES_NOT_FIT}: it is not a cache of this version`);
    return undefined;
  }
}

const DOES_NOT_FIT = 'the key cache is not used, and keystores are decrypted one by one';

export function digestPassword(password: Uint8Array): Buffer {
  return createHash('sha256').update(password).digest();
}

/** The old file or the new one is there, whenever the machine stops. */
async function replaceFile(path: string, text: string): Promise<void> {
  const beside = `${path}.${process.pid}.new`;
  try {
    await writeDurably(beside, text);
    await rename(beside, path);
  } catch (error) {
    await unlink(beside).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
}

function messageOf(error: unknown): string {
  return errorCode(error) ?? String(error);
}

function wipeEntry(entry: CacheEntry | undefined): void {
  entry?.secretKey.fill(0);
  entry?.passwordDigest.fill(0);
}
