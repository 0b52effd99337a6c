// The keys of keystores that were decrypted once, in encrypted slices, so that the next start derives nothing
// (specification/keys.md#key-cache). It trusts nothing of the file: what does not fit costs time and nothing else.

import { createHash } from 'node:crypto';
import { chmod, rename, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '../../../common/command-line/sync-folder.ts';
import { errorCode } from '../../../common/formats/error-code.ts';
import { parseJson } from '../../../common/formats/parse-json.ts';
import type { Log } from '../../../common/observe/log.ts';
import type { Keystore } from '../keystores/cipher.ts';
import { writeDurably } from './durable-files.ts';
import {
  CACHE_FILE,
  type CacheEntry,
  cacheText,
  decryptSlice,
  type EncryptedSlice,
  encryptSlice,
  keystoreNames,
  newSalt,
  SECRET_BYTES,
  SliceKeys,
} from './key-cache-file.ts';
import { readSmallFile } from './small-files.ts';

/** A million entries of some 220 bytes. */
const MAX_CACHE_BYTES = 2 ** 28;
const OWNER_ALONE = 0o600;
/** Of n keystores, a start opens about √n / 4 slices, and a keystore that is gone costs about 4 √n others. */
const slicesFor = (keystores: number): number => Math.ceil(Math.sqrt(keystores) / 4);
/** When the cache has this many times more slices than it should, all are written again, once everything is at hand. */
const MANY_SLICES = 2;

/** What an entry is bound to, as text. */
export function keystoreName({ uuid, checksum, publicKey }: Keystore): string {
  return [uuid ?? '', Buffer.from(checksum).toString('hex'), publicKey ?? ''].join(' ');
}

interface Slice {
  readonly sealed: EncryptedSlice;
  readonly names: readonly string[];
  opened?: Promise<boolean>;
}

/** One look at the folders: what the file had, and what it shall have. Holds secrets until save() or wipe(). */
export class KeyCache {
  readonly #path: string;
  readonly #log: Log;
  readonly #keys = new SliceKeys();
  #slices: readonly Slice[] = [];
  readonly #sliceOf = new Map<string, Slice>();
  #digests: ReadonlyMap<string, Buffer> = new Map();
  readonly #cached = new Map<string, Buffer>();
  /** What the next file has; without a secret key: only if the file has it already. */
  readonly #kept = new Map<string, { readonly passwordDigest: Buffer; readonly secretKey: Buffer | undefined }>();

  constructor(path: string, { log }: { readonly log: Log }) {
    this.#path = path;
    this.#log = log;
  }

  /** @param passwords of the keystores that are there, by keystoreName, digested; taken over */
  async open(passwords: () => Promise<ReadonlyMap<string, Buffer>>): Promise<void> {
    const slices = await this.#read();
    if (slices.length === 0) return;
    this.#digests = await passwords();
    this.#slices = slices.map((sealed) => ({ sealed, names: keystoreNames(sealed) }));
    for (const slice of this.#slices) for (const name of slice.names) this.#sliceOf.set(name, slice);
  }

  async take(keystore: Keystore): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const name = keystoreName(keystore);
    const slice = this.#sliceOf.get(name);
    if (slice === undefined || !(await this.#isOpened(slice))) return undefined;
    const cached = this.#cached.get(name);
    return cached === undefined ? undefined : Uint8Array.from(cached);
  }

  /** @param passwordDigest taken over @param secretKey copied; that of the file unless given */
  keep(keystore: Keystore, passwordDigest: Buffer, secretKey?: Uint8Array): void {
    const name = keystoreName(keystore);
    const before = this.#kept.get(name); // the same keystore at another place
    before?.passwordDigest.fill(0);
    if (secretKey !== undefined) before?.secretKey?.fill(0);
    const own = secretKey === undefined ? before?.secretKey : Buffer.from(secretKey);
    this.#kept.set(name, { passwordDigest, secretKey: own });
  }

  /** Write the file when it would say something else. A file that cannot be written costs the next start time. */
  async save(): Promise<void> {
    try {
      const { carried, entries, isNews } = await this.#next();
      if (!isNews || carried.length + entries.length === 0) return;
      const made = await this.#encrypt(entries);
      await replaceFile(this.#path, cacheText([...carried.map(({ sealed }) => sealed), ...made]));
      const count = entries.length + carried.reduce((sum, { names }) => sum + names.length, 0);
      this.#log.info({ file: this.#path, entries: count }, 'the key cache is written');
    } catch (error) {
      this.#log.warn({ file: this.#path, error: messageOf(error) }, 'the key cache cannot be written');
    } finally {
      this.wipe();
    }
  }

  wipe(): void {
    for (const secret of this.#cached.values()) secret.fill(0);
    for (const digest of this.#digests.values()) digest.fill(0);
    for (const { passwordDigest, secretKey } of this.#kept.values()) {
      passwordDigest.fill(0);
      secretKey?.fill(0);
    }
    this.#keys.wipe();
    this.#cached.clear();
    this.#kept.clear();
    this.#sliceOf.clear();
    this.#slices = [];
    this.#digests = new Map();
  }

  async #next() {
    const carried: Slice[] = [];
    for (const slice of this.#slices) if (await this.#stays(slice)) carried.push(slice);
    const settled = new Set(carried.flatMap(({ names }) => names));
    const entries = [...this.#kept.keys()].flatMap((name) => (settled.has(name) ? [] : this.#entryOf(name)));
    const isNews = entries.length > 0 || carried.length < this.#slices.length;
    const all = [...this.#kept.keys()].flatMap((name) => this.#entryOf(name));
    const isMany = carried.length + slicesFor(entries.length) > MANY_SLICES * slicesFor(this.#kept.size);
    if (isMany && all.length === this.#kept.size) return { carried: [], entries: all, isNews: true };
    return { carried, entries, isNews };
  }

  /** Nothing but what is kept; or something is gone, and what else it has is at hand nowhere else. */
  async #stays(slice: Slice): Promise<boolean> {
    const kept = slice.names.filter((name) => this.#sliceOf.get(name) === slice && this.#kept.has(name));
    if (kept.length === 0) return false;
    const isWhole = kept.length === slice.names.length;
    if (isWhole && slice.opened === undefined) return true;
    const isOpened = await this.#isOpened(slice);
    if (isOpened) return isWhole;
    return kept.some((name) => this.#kept.get(name)?.secretKey === undefined);
  }

  #entryOf(name: string): readonly (readonly [string, CacheEntry])[] {
    const kept = this.#kept.get(name);
    const secretKey = kept?.secretKey ?? this.#cached.get(name);
    return kept === undefined || secretKey === undefined
      ? []
      : [[name, { passwordDigest: kept.passwordDigest, secretKey }]];
  }

  async #encrypt(entries: readonly (readonly [string, CacheEntry])[]): Promise<EncryptedSlice[]> {
    const salt = newSalt();
    const size = Math.ceil(entries.length / slicesFor(entries.length));
    const made: EncryptedSlice[] = [];
    for (let from = 0; from < entries.length; from += size) {
      made.push(await encryptSlice(entries.slice(from, from + size), salt, this.#keys));
    }
    return made;
  }

  #isOpened(slice: Slice): Promise<boolean> {
    slice.opened ??= this.#decrypt(slice);
    return slice.opened;
  }

  async #decrypt({ sealed, names }: Slice): Promise<boolean> {
    const fields = { file: this.#path, entries: names.length };
    try {
      const opened = await decryptSlice(sealed, this.#digests, this.#keys);
      if (opened !== undefined) {
        this.#hold(names, opened);
        return true;
      }
      const gone = names.filter((name) => !this.#digests.has(name)).length;
      this.#log.info({ ...fields, gone }, `${DOES_NOT_FIT}: keystores or passwords were changed or removed`);
    } catch (error) {
      // scrypt takes 256 MiB, which the machine may not have now
      this.#log.warn({ ...fields, error: messageOf(error) }, DOES_NOT_FIT);
    }
    return false;
  }

  #hold(names: readonly string[], opened: Buffer): void {
    for (const [index, name] of names.entries()) {
      this.#cached.get(name)?.fill(0);
      this.#cached.set(name, Buffer.from(opened.subarray(index * SECRET_BYTES, (index + 1) * SECRET_BYTES)));
    }
    opened.fill(0);
  }

  async #read(): Promise<readonly EncryptedSlice[]> {
    const file = await readSmallFile(this.#path, MAX_CACHE_BYTES);
    if ('refused' in file) {
      if (file.refused !== 'does not exist') this.#log.warn({ file: this.#path, reason: file.refused }, IS_NOT_USED);
      return [];
    }
    await this.#keepForOwner();
    const parsed = CACHE_FILE.safeParse(parseJson(file.content.toString('utf8')));
    if (parsed.success) return parsed.data.slices;
    this.#log.warn({ file: this.#path }, `${IS_NOT_USED}: it is not a cache of this version`);
    return [];
  }

  /** Who reads it can guess at passwords; who writes it can only cost time. */
  async #keepForOwner(): Promise<void> {
    try {
      const mode = (await stat(this.#path)).mode & 0o777;
      if ((mode & ~OWNER_ALONE) === 0) return;
      await chmod(this.#path, OWNER_ALONE);
      this.#log.warn(
        { file: this.#path, mode: mode.toString(8) },
        'the key cache could be read by others, who may guess at the passwords: it is for its owner alone again',
      );
    } catch (error) {
      this.#log.warn({ file: this.#path, error: messageOf(error) }, 'the key cache is not for its owner alone');
    }
  }
}

const IS_NOT_USED = 'the key cache is not used, and keystores are decrypted one by one';
const DOES_NOT_FIT = 'a part of the key cache is not used, and its keystores are decrypted one by one';

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
