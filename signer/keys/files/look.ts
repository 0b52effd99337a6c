// One pass over the key folders: raw keys first, because they are quick, then keystores. What is described as before is
// kept. The key of a bad file stays, if an earlier pass had one from it.

import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { chunks, inParallel } from '../../parallel.ts';
import type { KeystorePool, PoolAnswer } from '../keystores/pool.ts';
import type { AddedKey, KeyRefusal } from '../loaded-key.ts';
import type { KeyBatch, KeyStore } from '../store.ts';
import { SECRET_KEY_BYTES } from '../vault.ts';
import { type DescribedKey, type KeyDescriptor, MAX_DESCRIPTOR_BYTES, parseDescriptors } from './descriptor.ts';
import { digestPassword, type KeyCache, keystoreName } from './key-cache.ts';
import { type KeystoreFile, type KeystorePlace, type ReadKeystore, readKeystoreFile } from './keystore-file.ts';
import type { Listing } from './listing.ts';
import type { KeyPlace, LoadProgress, LoadReport, OrderedPlace } from './load-report.ts';
import { readSmallFile } from './small-files.ts';

export interface KeyFilesParts {
  readonly store: KeyStore;
  readonly pool: KeystorePool;
  readonly log: Log;
  readonly clock: Clock;
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly signal?: AbortSignal;
}

interface Held {
  readonly publicKey: string;
  readonly contents?: string;
}

interface DescribedAt {
  readonly place: OrderedPlace;
  readonly descriptor: KeyDescriptor;
}
type RawKeyAt = DescribedAt & { readonly descriptor: { readonly type: 'file-raw' } };

/** Few enough that noting them does not hold up signing. */
const RAW_KEYS_AT_ONCE = 250;

interface LookParts extends KeyFilesParts {
  readonly cache: KeyCache | undefined;
}

export class Look {
  readonly found = new HeldPlaces();
  readonly named = new Set<string>();
  kept = 0;
  readonly #before: HeldPlaces;
  readonly #keysBefore: ReadonlySet<string>;
  readonly #seen = new Set<string>();
  readonly #ahead = new ReadAhead();
  readonly #parts: LookParts;
  readonly #report: LoadReport;

  constructor(before: HeldPlaces, parts: LookParts, report: LoadReport) {
    this.#before = before;
    this.#keysBefore = before.publicKeys();
    this.#parts = parts;
    this.#report = report;
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
  }

  /** Reads every descriptor, loads the raw keys, and answers the keystores, which are still to be loaded, in order. */
  async #loadRawKeys(files: readonly string[], concurrency: number): Promise<KeystoreAt[]> {
    const keystores: KeystoreAt[] = [];
    await this.#parts.store.batch((batch) =>
      inParallel([...files.entries()], concurrency, async ([order, file]) => {
        this.#parts.signal?.throwIfAborted();
        const described = await this.#readDescriptors(file, order);
        try {
          for (const { place, descriptor } of described)
            if (descriptor.type === 'file-keystore') keystores.push({ ...place, ...descriptor });
          const raw = described.filter(isRaw);
          for (const some of chunks(raw, RAW_KEYS_AT_ONCE)) await this.#addRawKeys(batch, some);
        } finally {
          for (const { descriptor } of described) if (descriptor.type === 'file-raw') descriptor.secretKey.fill(0);
        }
      }),
    );
    return keystores.sort((a, b) => a.order - b.order);
  }

  /** The threads that sign derive the public keys, a tenth of a millisecond each. */
  async #addRawKeys(batch: KeyBatch, keys: readonly RawKeyAt[]): Promise<void> {
    this.#parts.signal?.throwIfAborted();
    const secretKeys = Buffer.alloc(keys.length * SECRET_KEY_BYTES);
    for (const [index, { descriptor }] of keys.entries())
      secretKeys.set(descriptor.secretKey, index * SECRET_KEY_BYTES);
    const holding = batch.hold(secretKeys);
    secretKeys.fill(0);
    const held = await holding;
    // When the store is sealed meanwhile, the first of them ends the load; the core has wiped all.
    for (const [index, { place }] of keys.entries()) this.#noteAdded(place, batch.addHeld(held[index], 'filesystem'));
  }

  async #readDescriptors(file: string, fileOrder: number) {
    const read = await readSmallFile(file, MAX_DESCRIPTOR_BYTES);
    if ('refused' in read) {
      this.#failFile(file, fileOrder, read.refused);
      return [];
    }
    const described = parsedAndWiped(file, read.content);
    const keys: DescribedAt[] = [];
    for (const key of described) {
      const place = { file, document: key.document, order: orderOf(fileOrder, key.document) };
      if ('refused' in key) this.#fail(place, key.refused);
      else keys.push({ place, descriptor: key.descriptor });
    }
    return keys;
  }

  async #loadKeystore(place: KeystoreAt): Promise<void> {
    const { cache } = this.#parts;
    const read = await this.#ahead.take(place);
    if ('refused' in read) return this.#failKeystore(place, read.publicKey, read.refused);
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
    this.#addKey(place, opened.secretKey, keystore.publicKey, contents);
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
      this.named.add(publicKey);
    }
    this.#fail(place, reason);
  }

  /** The files hold what they held, and the key is loaded: from here, or from a source that had it first. */
  #isUnchanged(place: KeystoreAt, { contents, password }: ReadKeystore): boolean {
    const before = this.#before.at(place);
    if (before?.contents !== contents || this.#parts.store.find(before.publicKey) === undefined) return false;
    password.fill(0);
    this.#hold(place, before);
    return true;
  }

  #addKey(place: OrderedPlace, secretKey: Uint8Array, expectedPublicKey: string | undefined, contents: string): void {
    this.#noteAdded(place, this.#take(secretKey, expectedPublicKey), contents);
  }

  #noteAdded(place: OrderedPlace, added: AddedKey, contents?: string): void {
    if (added.outcome === 'refused') {
      if (added.reason === 'sealed') throw new SignerError('sealed');
      this.#fail(place, ADD_REFUSALS[added.reason]);
      return;
    }
    const { publicKey, source } = added.key;
    if (added.outcome === 'added') this.#report.load(place, publicKey);
    const isKept = source === 'filesystem' && this.#keysBefore.has(publicKey) && !this.#seen.has(publicKey);
    if (added.outcome === 'duplicate' && !isKept) this.#report.duplicate(place, publicKey);
    if (added.outcome === 'duplicate' && isKept) this.kept += 1;
    this.#note(place, contents === undefined ? { publicKey } : { publicKey, contents });
  }

  #take(secretKey: Uint8Array, expectedPublicKey: string | undefined): AddedKey {
    try {
      return this.#parts.store.add(secretKey, 'filesystem', expectedPublicKey);
    } finally {
      secretKey.fill(0);
    }
  }

  #hold(place: OrderedPlace, before: Held): void {
    if (!this.#seen.has(before.publicKey)) this.kept += 1;
    this.#note(place, before);
  }

  #note(place: OrderedPlace, held: Held): void {
    this.#seen.add(held.publicKey);
    this.found.put(place, held);
  }

  #fail(place: OrderedPlace, reason: string): void {
    const before = this.#before.at(place);
    if (before !== undefined) this.#stays(place, before, reason);
    this.#report.fail(place, reason);
  }

  /** Nothing is known of the documents of a file that cannot be read. */
  #failFile(file: string, fileOrder: number, reason: string): void {
    for (const [document, before] of this.#before.inFile(file))
      this.#stays({ file, document, order: orderOf(fileOrder, document) }, before, reason);
    this.#report.fail({ file, document: 1, order: orderOf(fileOrder, 1) }, reason);
  }

  #stays(place: OrderedPlace, before: Held, reason: string): void {
    this.#hold(place, before);
    const fields = { file: place.file, document: place.document, public_key: before.publicKey, reason };
    this.#parts.log.warn(fields, 'a key stays loaded although its file cannot be used: repair or remove the file');
  }
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

const ADD_REFUSALS = {
  invalid_secret_key: 'the private key is zero or not below the group order',
  public_key_mismatch: 'the private key does not belong to the public key that the keystore names',
  too_many_keys: 'as many keys are loaded as the signer holds',
} as const satisfies Record<Exclude<KeyRefusal, 'sealed'>, string>;

// Keystores and passwords that were read ahead: the key cache opens with the passwords of all of them or not at all.

/** Small files read at once. */
const READS_AT_ONCE = 16;

class ReadAhead {
  /** By the order of its place. */
  readonly #read = new Map<number, KeystoreFile>();

  /** @returns the digests of the passwords by keystoreName, which the caller wipes @throws the signal's reason */
  async passwords(places: readonly KeystoreAt[], signal: AbortSignal | undefined): Promise<Map<string, Buffer>> {
    const digests = new Map<string, Buffer>();
    try {
      await inParallel(places, READS_AT_ONCE, async (place) => {
        signal?.throwIfAborted();
        const read = await readKeystoreFile(place);
        this.#read.set(place.order, read);
        if ('refused' in read) return;
        const name = keystoreName(read.keystore);
        digests.get(name)?.fill(0); // the same keystore at another place
        digests.set(name, digestPassword(read.password));
      });
      return digests;
    } catch (error) {
      for (const digest of digests.values()) digest.fill(0);
      throw error;
    }
  }

  /** What was read, or what is there now; the caller wipes the password. */
  async take(place: KeystoreAt): Promise<KeystoreFile> {
    const ahead = this.#read.get(place.order);
    this.#read.delete(place.order);
    return ahead ?? readKeystoreFile(place);
  }

  /** What nobody took: the look was ended before. */
  wipe(): void {
    for (const read of this.#read.values()) if (!('refused' in read)) read.password.fill(0);
    this.#read.clear();
  }
}

// Where a key is described: a file, and the document in it, counted from 1. The order of places is that of the files as
// they were listed.
type KeystoreAt = OrderedPlace & KeystorePlace;

/** The keys of a look, by file. A raw key is its text alone, because there may be a million. */
export class HeldPlaces {
  readonly #files = new Map<string, (Held | string | undefined)[]>();

  put({ file, document }: KeyPlace, { publicKey, contents }: Held): void {
    const held = contents === undefined ? publicKey : { publicKey, contents };
    const documents = this.#files.get(file);
    // Most files have one document: an array that begins empty would take room for sixteen more.
    if (documents === undefined && document === 1) return void this.#files.set(file, [held]);
    const longer = documents ?? [];
    while (longer.length < document) longer.push(undefined);
    longer[document - 1] = held;
    this.#files.set(file, longer);
  }

  at({ file, document }: KeyPlace): Held | undefined {
    return heldOf(this.#files.get(file)?.[document - 1]);
  }

  *inFile(file: string): Generator<[document: number, held: Held]> {
    for (const [index, kept] of (this.#files.get(file) ?? []).entries()) {
      const held = heldOf(kept);
      if (held !== undefined) yield [index + 1, held];
    }
  }

  publicKeys(): Set<string> {
    const all = new Set<string>();
    for (const file of this.#files.keys()) for (const [, { publicKey }] of this.inFile(file)) all.add(publicKey);
    return all;
  }
}

function heldOf(kept: Held | string | undefined): Held | undefined {
  return typeof kept === 'string' ? { publicKey: kept } : kept;
}

/** A file of MAX_DESCRIPTOR_BYTES has fewer documents than bytes. */
function orderOf(fileOrder: number, document: number): number {
  return fileOrder * (MAX_DESCRIPTOR_BYTES + 1) + document;
}

/** A keystore that lies in a folder of keystores and that no file describes. */
function inFolder(place: KeystorePlace, fileOrder: number): KeystoreAt {
  return { ...place, file: place.keystoreFile, document: 1, order: orderOf(fileOrder, 1) };
}
