// One pass over the key folders: raw keys first, because they are quick, then keystores. What is described as before is
// kept. The keys of a bad file stay, if an earlier pass had some from it.

import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { chunks, inParallel, roomFor } from '../../parallel.ts';
import type { KeystorePool, PoolAnswer } from '../keystores/pool.ts';
import {
  type AddedKey,
  type ExpectedKey,
  isSameForm,
  type KeyRefusal,
  type LoadedKey,
  SHARE_REFUSALS,
} from '../loaded-key.ts';
import type { KeyBatch, KeyStore } from '../store.ts';
import { type HeldKey, SECRET_KEY_BYTES } from '../vault.ts';
import { type DescribedKey, type KeyDescriptor, MAX_DESCRIPTOR_BYTES, parseDescriptors } from './descriptor.ts';
import { HeldPlaces, type KeptKey } from './held-places.ts';
import { digestPassword, type KeyCache } from './key-cache.ts';
import type { ReadKeystore } from './keystore-file.ts';
import type { Listing } from './listing.ts';
import type { LoadProgress, LoadReport, OrderedPlace } from './load-report.ts';
import { inFolder, type KeystoreAt, orderOf, ReadAhead } from './read-ahead.ts';
import { contentsOf, readSmallFile } from './small-files.ts';

export interface KeyFilesParts {
  readonly store: KeyStore;
  readonly pool: KeystorePool;
  readonly log: Log;
  readonly clock: Clock;
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly signal?: AbortSignal;
}

interface DescribedAt {
  readonly place: OrderedPlace;
  readonly descriptor: KeyDescriptor;
}
interface ReadDescriptors {
  readonly described: readonly DescribedAt[];
  /** Of the file, when it could be read. */
  readonly contents?: string;
}
type RawKeyAt = DescribedAt & { readonly descriptor: { readonly type: 'file-raw' } };

/** Few enough that noting them does not hold up signing. */
const RAW_KEYS_AT_ONCE = 128;
/** They take room in locked memory before it is known whether they are new. */
const RAW_KEYS_ON_THEIR_WAY = 2 * RAW_KEYS_AT_ONCE;
/** A signing worker that ends takes the keys with it that were on their way. */
const HOLD_ATTEMPTS = 5;
const HOLD_RETRY_MS = 100;

interface FolderScanParts extends KeyFilesParts {
  readonly cache: KeyCache | undefined;
}

export class FolderScan {
  readonly found = new HeldPlaces();
  readonly #named = new Set<string>();
  /** Files of which this scan refused something. */
  readonly #damaged = new Map<string, { readonly order: number; readonly reason: string }>();
  readonly #before: HeldPlaces;
  readonly #seen = new Set<string>();
  readonly #onTheirWay = roomFor(RAW_KEYS_ON_THEIR_WAY);
  readonly #ahead = new ReadAhead();
  readonly #parts: FolderScanParts;
  readonly #report: LoadReport;

  constructor(before: HeldPlaces, parts: FolderScanParts, report: LoadReport) {
    this.#before = before;
    this.#parts = parts;
    this.#report = report;
  }

  /** Whether a file holds the key, or names one that could not be opened or is one too many. */
  describes(publicKey: string): boolean {
    return this.#seen.has(publicKey) || this.#named.has(publicKey);
  }

  async run({ descriptors, keystores }: Listing, rawLoadConcurrency: number): Promise<void> {
    const { pool, signal } = this.#parts;
    const described = await this.#loadRawKeys(descriptors, rawLoadConcurrency);
    const all = [...described, ...keystores.map((place, index) => inFolder(place, descriptors.length + index))];
    this.#report.expectKeystores(all.length);
    try {
      await this.#parts.cache?.open(() => this.#ahead.passwords(all, signal));
      // More at once than workers: the next keystore is read while the workers are busy.
      await inParallel(all, pool.concurrency + 2, async (place) => {
        signal?.throwIfAborted();
        await this.#loadKeystore(place);
      });
    } finally {
      this.#ahead.wipe();
    }
    this.#keepKeysOfDamagedFiles();
  }

  /** Reads every descriptor, loads the raw keys, and answers the keystores, which are still to be loaded, in order. */
  async #loadRawKeys(files: readonly string[], concurrency: number): Promise<KeystoreAt[]> {
    const keystores: KeystoreAt[] = [];
    await this.#parts.store.batch((batch) =>
      inParallel([...files.entries()], concurrency, async ([order, file]) => {
        this.#parts.signal?.throwIfAborted();
        const { described, contents } = await this.#readDescriptors(file, order);
        try {
          for (const { place, descriptor } of described)
            if (descriptor.type === 'file-keystore') keystores.push({ ...place, ...descriptor });
          const raw = described.filter(isRaw);
          for (const some of chunks(raw, RAW_KEYS_AT_ONCE)) await this.#addRawKeys(batch, some);
          const isWhole = raw.length === described.length && !this.#damaged.has(file);
          if (contents !== undefined && isWhole) this.found.putContents(file, contents);
        } finally {
          for (const { descriptor } of described) if (descriptor.type === 'file-raw') descriptor.secretKey.fill(0);
        }
      }),
    );
    return keystores.sort((a, b) => a.order - b.order);
  }

  /** The threads that sign derive the public keys, a tenth of a millisecond each. */
  async #addRawKeys(batch: KeyBatch, keys: readonly RawKeyAt[]): Promise<void> {
    await this.#onTheirWay(keys.length, async () => {
      const held = await this.#held(batch, keys);
      let next = 0;
      try {
        for (const { place } of keys) this.#noteAdded(place, batch.addHeld(held[next++], 'filesystem'));
      } finally {
        for (const left of held.slice(next)) batch.letGo(left);
      }
    });
  }

  /** @throws SignerError `sealed`, `signing_unavailable`; Error that names the file when there is no memory */
  async #held(batch: KeyBatch, keys: readonly RawKeyAt[]): Promise<readonly (HeldKey | undefined)[]> {
    for (let attempt = 1; ; attempt++) {
      this.#parts.signal?.throwIfAborted();
      const secretKeys = Buffer.alloc(keys.length * SECRET_KEY_BYTES);
      for (const [index, { descriptor }] of keys.entries())
        secretKeys.set(descriptor.secretKey, index * SECRET_KEY_BYTES);
      const holding = batch.hold(secretKeys);
      secretKeys.fill(0);
      try {
        return await holding;
      } catch (error) {
        if (!(error instanceof SignerError)) throw ofFile(keys[0]?.place.file, error);
        if (error.reason !== 'signing_unavailable' || attempt === HOLD_ATTEMPTS) throw error;
      }
      await pause(HOLD_RETRY_MS * attempt, undefined, { signal: this.#parts.signal }).catch(() => undefined);
    }
  }

  async #readDescriptors(file: string, fileOrder: number): Promise<ReadDescriptors> {
    const read = await readSmallFile(file, MAX_DESCRIPTOR_BYTES);
    if ('refused' in read) {
      this.#fail({ file, document: 1, order: orderOf(fileOrder, 1) }, read.refused);
      return { described: [] };
    }
    const contents = contentsOf(read.content);
    if (this.#isUnchangedFile(file, fileOrder, contents)) {
      read.content.fill(0);
      return { described: [], contents };
    }
    const described: DescribedAt[] = [];
    for (const key of parsedAndWiped(file, read.content)) {
      const place = { file, document: key.document, order: orderOf(fileOrder, key.document) };
      if ('foreign' in key) this.#report.ignore(key.foreign);
      else if ('refused' in key) this.#fail(place, key.refused);
      else described.push({ place, descriptor: key.descriptor });
    }
    return { described, contents };
  }

  /** It holds the raw keys that it held, and all of them are loaded: from here, or from a source that had it first. */
  #isUnchangedFile(file: string, fileOrder: number, contents: string): boolean {
    if (this.#before.contentsOf(file) !== contents) return false;
    const { store } = this.#parts;
    const loaded = [...this.#before.inFile(file)].map(([document, { publicKey }]) => {
      return { document, key: store.find(publicKey) };
    });
    if (!loaded.every((one): one is { document: number; key: LoadedKey } => one.key !== undefined)) return false;
    for (const { document, key } of loaded) {
      if (key.source !== 'filesystem') store.noteInFile(key.publicKey);
      this.#noteAdded({ file, document, order: orderOf(fileOrder, document) }, { outcome: 'duplicate', key });
    }
    return true;
  }

  async #loadKeystore(place: KeystoreAt): Promise<void> {
    const { cache } = this.#parts;
    const read = await this.#ahead.take(place);
    if ('refused' in read) {
      const isNamed = place.file !== place.keystoreFile; // by a descriptor, as a keystore
      if (read.foreign !== undefined && !isNamed) return this.#report.ignore(read.foreign);
      return this.#failKeystore(place, read.publicKey, read.refused);
    }
    const { keystore, contents } = read;
    const passwordDigest = cache === undefined ? undefined : digestPassword(read.password);
    if (this.#isUnchanged(place, read)) {
      if (passwordDigest !== undefined) cache?.keep(keystore, passwordDigest);
      return;
    }
    const opened = await this.#open(read).catch((error: unknown) => {
      passwordDigest?.fill(0);
      throw error;
    });
    if ('refused' in opened) {
      passwordDigest?.fill(0);
      return this.#failKeystore(place, keystore.publicKey, DECRYPTION_REFUSALS[opened.refused]);
    }
    if (passwordDigest !== undefined) cache?.keep(keystore, passwordDigest, opened.secretKey);
    this.#addKey(place, opened.secretKey, keystore.share ?? keystore.publicKey, contents);
    this.#parts.store.noteDerivationPath(this.found.at(place)?.publicKey ?? '', keystore.path);
  }

  async #open({ keystore, password }: ReadKeystore): Promise<PoolAnswer> {
    const secretKey = await this.#parts.cache?.take(keystore);
    if (secretKey === undefined) return this.#parts.pool.decrypt(keystore, password, 'load');
    password.fill(0);
    return { secretKey };
  }

  #failKeystore(place: KeystoreAt, publicKey: string | undefined, reason: string): void {
    if (publicKey !== undefined) {
      // The next start may open it: a deletion of this key must not promise that it is gone.
      this.#parts.store.noteInFile(publicKey);
      this.#named.add(publicKey);
    }
    this.#fail(place, reason);
  }

  /** The files hold what they held, and the key is loaded: from here, or from a source that had it first. */
  #isUnchanged(place: KeystoreAt, { contents, keystore, password }: ReadKeystore): boolean {
    const before = this.#before.at(place);
    const key = before?.contents === contents ? this.#parts.store.find(before.publicKey) : undefined;
    if (before === undefined || key === undefined || !isSameForm(key.share, keystore.share)) return false;
    password.fill(0);
    this.#hold(place, before);
    return true;
  }

  #addKey(place: OrderedPlace, secretKey: Uint8Array, expected: ExpectedKey, contents: string): void {
    this.#noteAdded(place, this.#take(secretKey, expected), contents);
  }

  #noteAdded(place: OrderedPlace, added: AddedKey, contents?: string): void {
    if (added.outcome === 'refused') {
      if (added.reason === 'sealed') throw new SignerError('sealed');
      if (added.publicKey !== undefined) this.#named.add(added.publicKey);
      this.#fail(place, ADD_REFUSALS[added.reason]);
      return;
    }
    const { publicKey, source } = added.key;
    const isKept = source === 'filesystem' && !this.#seen.has(publicKey); // an earlier look loaded it
    if (added.outcome === 'added') this.#report.load(place, publicKey);
    else if (isKept) this.#report.keep(place, publicKey);
    else this.#report.duplicate(place, publicKey);
    this.#note(place, contents === undefined ? { publicKey } : { publicKey, contents });
  }

  #take(secretKey: Uint8Array, expected: ExpectedKey): AddedKey {
    try {
      return this.#parts.store.add(secretKey, 'filesystem', expected);
    } finally {
      secretKey.fill(0);
    }
  }

  #hold(place: OrderedPlace, before: KeptKey): void {
    if (!this.#seen.has(before.publicKey)) this.#report.keep(place, before.publicKey);
    this.#note(place, before);
  }

  #note(place: OrderedPlace, held: KeptKey): void {
    this.#seen.add(held.publicKey);
    this.found.put(place, held);
  }

  #fail(place: OrderedPlace, reason: string): void {
    this.#damaged.set(place.file, { order: place.order, reason });
    this.#report.fail(place, reason);
  }

  /** A file that is damaged, or that its writer has half written, may describe more than this look could read. */
  #keepKeysOfDamagedFiles(): void {
    for (const [file, { order, reason }] of this.#damaged) {
      for (const [, before] of this.#before.inFile(file)) {
        const { publicKey } = before;
        if (this.#seen.has(publicKey) || this.#parts.store.find(publicKey) === undefined) continue;
        // Its document may be another key's now.
        this.#hold({ file, document: this.found.documentsIn(file) + 1, order }, before);
        const fields = { file, public_key: publicKey, reason };
        this.#parts.log.warn(fields, 'a key stays loaded although its file cannot be used: repair or remove the file');
      }
    }
  }
}

function ofFile(file: string | undefined, cause: unknown): Error {
  return new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}

function isRaw(described: DescribedAt): described is RawKeyAt {
  return described.descriptor.type === 'file-raw';
}

function parsedAndWiped(file: string, content: Buffer): DescribedKey[] {
  try {
    return parseDescriptors(file, content);
  } finally {
    content.fill(0);
  }
}

export const DECRYPTION_REFUSALS = {
  wrong_password: 'the password does not open the keystore',
  password_not_utf8: 'the password is not UTF-8',
  too_much_memory: 'its key derivation takes more than half of the memory of this machine',
  decryption_failed: 'its decryption failed on this machine',
} as const;

export const ADD_REFUSALS = {
  invalid_secret_key: 'the private key is zero or not below the group order',
  public_key_mismatch: 'the private key does not belong to the public key that the keystore names',
  too_many_keys: 'as many keys are loaded as the signer holds',
  ...SHARE_REFUSALS,
} as const satisfies Record<Exclude<KeyRefusal, 'sealed'>, string>;
