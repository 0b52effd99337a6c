// The keys that can sign: which public keys are loaded, from where, and the handle of each secret in the BLS core.
// Secrets pass through on their way into the core and are never kept here. Whoever asks for the list of keys gets one
// complete, published set or an error, never a shorter list: validator clients drop a validator that vanishes from it
// (specification/signing.md#public-keys).

import assert from 'node:assert/strict';
import { encodeHex } from '../../formats/hex.ts';
import type { Clock } from '../../observe/clock.ts';
import { SignerError } from '../api/errors.ts';
import { ListedKeys } from './listed.ts';
import type { AddedKey, KeySource, LoadedKey } from './loaded-key.ts';
import { sortInPieces } from './sorted.ts';
import type { HeldKey, SecretKeyVault } from './vault.ts';

/** loading: keys can sign as they come, the list waits for the first complete load. sealed: empty for good. */
export type KeyStoreState = 'loading' | 'ready' | 'sealed';

/**
 * Changes that the list of public keys shows all at once. Added keys can sign at once; removed ones can until the end.
 */
export interface KeyBatch {
  add(secretKey: Uint8Array, source: KeySource, expectedPublicKey?: string): AddedKey;
  /**
   * Let the vault hold secret keys (32 bytes each, one after another) and derive their public keys beside what else it
   * does; the caller wipes its copies as soon as this returns. None of them signs before `addHeld`; whoever calls gives
   * each to `addHeld` or to `letGo`.
   * @returns in order; undefined for what is no secret key. Rejects, and holds none, when the store is sealed
   */
  hold(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]>;
  /** As `add`; what it does not add it lets go. */
  addHeld(held: HeldKey | undefined, source: KeySource, expectedPublicKey?: string): AddedKey;
  letGo(held: HeldKey | undefined): void;
  remove(publicKey: string): void;
}

const MAX_LOADED_KEYS = 500_000;

export class KeyStore {
  readonly #vault: SecretKeyVault;
  readonly #clock: Clock;
  readonly #maximumKeys: number;
  readonly #keys = new Map<string, LoadedKey>();
  readonly #countBySource: Record<KeySource, number> = { filesystem: 0, dynamodb: 0, memory: 0 };
  /** Keys that a key file holds or names although its copy is not the loaded one: the next start may load it. */
  readonly #alsoInFiles = new Set<string>();
  /** What each batch that has not ended has added: these keys sign and are not listed. */
  readonly #openBatches = new Set<Set<string>>();
  #state: KeyStoreState = 'loading';
  readonly #listed = new ListedKeys();

  constructor(options: { readonly maximumKeys?: number }, parts: { vault: SecretKeyVault; clock: Clock }) {
    this.#vault = parts.vault;
    this.#clock = parts.clock;
    this.#maximumKeys = options.maximumKeys ?? MAX_LOADED_KEYS;
  }

  get state(): KeyStoreState {
    return this.#state;
  }

  /** @param publicKey in the canonical spelling of formats/hex.ts */
  find(publicKey: string): LoadedKey | undefined {
    return this.#keys.get(publicKey);
  }

  /** Whether a key file holds or names the key, whichever copy of it is loaded. Complete when the first load is. */
  isInFile(publicKey: string): boolean {
    return this.#keys.get(publicKey)?.source === 'filesystem' || this.#alsoInFiles.has(publicKey);
  }

  /** A key file names this key, and its copy was not loaded. */
  noteInFile(publicKey: string): void {
    this.#alsoInFiles.add(publicKey);
  }

  /** The files of these keys are gone. A copy that came from one has been taken out before. */
  forgetFilesOf(publicKeys: Iterable<string>): void {
    for (const publicKey of publicKeys) this.#alsoInFiles.delete(publicKey);
  }

  /** Keys that files hold (isInFile) whose loaded copy, if there is one, is of another source. */
  alsoInFiles(): ReadonlySet<string> {
    return this.#alsoInFiles;
  }

  /**
   * Take a secret key (32 bytes, big endian) into the core; the caller wipes its own copy. A key that is loaded already
   * stays.
   * @param expectedPublicKey what the source says the public key is, canonical; another one refuses the key
   */
  add(secretKey: Uint8Array, source: KeySource, expectedPublicKey?: string): AddedKey {
    const added = this.#take(secretKey, source, expectedPublicKey);
    if (added.outcome === 'added') this.#listed.add(added.key.publicKey);
    return added;
  }

  /** The key is not found any more before its secret is wiped. Answers what it was, or undefined. */
  remove(publicKey: string): LoadedKey | undefined {
    const key = this.#keys.get(publicKey);
    if (key === undefined) return undefined;
    this.#keys.delete(publicKey);
    for (const added of this.#openBatches) added.delete(publicKey);
    this.#listed.remove(publicKey);
    this.#countBySource[key.source] -= 1;
    this.#vault.removeKey(key.handle);
    if (key.source === 'filesystem') this.noteInFile(publicKey); // the file is still there
    return key;
  }

  /**
   * Run a refresh: what it adds and removes appears in the list of public keys in one step when it ends. When it
   * throws, what it added is listed (those keys do sign) and what it wanted removed stays: a failed refresh never
   * shortens the list.
   */
  async batch<T>(refresh: (batch: KeyBatch) => Promise<T>): Promise<T> {
    const added = new Set<string>();
    const removed = new Map<string, LoadedKey>();
    let ended = false;
    this.#openBatches.add(added);
    const noted = (result: AddedKey): AddedKey => {
      if (result.outcome === 'refused') return result;
      removed.delete(result.key.publicKey);
      if (result.outcome === 'added') added.add(result.key.publicKey);
      return result;
    };
    const assertOpen = () => assert(!ended, 'a key added after the end of its batch would never be listed');
    const batch: KeyBatch = {
      add: (secretKey, source, expectedPublicKey) => {
        assertOpen();
        return noted(this.#take(secretKey, source, expectedPublicKey));
      },
      hold: async (secretKeys) => {
        if (this.#state === 'sealed') throw new SignerError('sealed');
        return this.#vault.addKeys(secretKeys);
      },
      addHeld: (held, source, expectedPublicKey) => {
        assertOpen();
        return noted(this.#takeHeld(held, source, expectedPublicKey));
      },
      letGo: (held) => {
        if (held !== undefined) this.#vault.removeKey(held.handle);
      },
      remove: (publicKey) => {
        const key = this.#keys.get(publicKey);
        if (key !== undefined) removed.set(publicKey, key);
      },
    };
    try {
      const result = await refresh(batch);
      ended = true;
      const inOrder = await sortInPieces([...added]);
      // A key that someone else took out and brought back meanwhile is not the one this batch meant.
      for (const [publicKey, key] of removed) if (this.#keys.get(publicKey) === key) this.remove(publicKey);
      this.#listed.addAll(
        inOrder.length === added.size ? inOrder : inOrder.filter((publicKey) => added.has(publicKey)),
      );
      added.clear();
      return result;
    } finally {
      ended = true;
      this.#openBatches.delete(added);
      for (const publicKey of added) this.#listed.add(publicKey);
    }
  }

  /** Every configured source has been read once: from now on the list is answered. */
  completeFirstLoad(): void {
    if (this.#state === 'loading') this.#state = 'ready';
  }

  /** @throws SignerError `starting` before the first load is complete, `sealed` after seal() */
  assertReady(): void {
    if (this.#state === 'loading') throw new SignerError('starting', { hint: 'its keys are still being loaded' });
    if (this.#state === 'sealed') throw new SignerError('sealed');
  }

  /**
   * The loaded public keys, ascending: the same array until something changes.
   * @throws SignerError as assertReady
   */
  publicKeys(): readonly string[] {
    this.assertReady();
    return this.#listed.ascending();
  }

  countBySource(): Readonly<Record<KeySource, number>> {
    return { ...this.#countBySource };
  }

  /**
   * Forget every key, wipe every secret, and refuse keys from now on: a load still under way must not bring any back.
   */
  seal(): void {
    this.#state = 'sealed';
    this.#keys.clear();
    for (const added of this.#openBatches) added.clear();
    this.#listed.clear();
    this.#alsoInFiles.clear();
    Object.assign(this.#countBySource, { filesystem: 0, dynamodb: 0, memory: 0 });
    this.#vault.wipe();
  }

  #take(secretKey: Uint8Array, source: KeySource, expectedPublicKey: string | undefined): AddedKey {
    if (this.#state === 'sealed') return { outcome: 'refused', reason: 'sealed' };
    return this.#takeHeld(this.#hold(secretKey), source, expectedPublicKey);
  }

  #takeHeld(held: HeldKey | undefined, source: KeySource, expectedPublicKey: string | undefined): AddedKey {
    if (held === undefined) return { outcome: 'refused', reason: 'invalid_secret_key' };
    if (this.#state === 'sealed') {
      this.#vault.removeKey(held.handle);
      return { outcome: 'refused', reason: 'sealed' };
    }
    const publicKey = encodeHex(held.publicKey);
    const first = this.#keys.get(publicKey);
    const mismatch = expectedPublicKey !== undefined && expectedPublicKey !== publicKey;
    const full = this.#keys.size >= this.#maximumKeys;
    if (mismatch || first !== undefined || full) this.#vault.removeKey(held.handle);
    if (mismatch) return { outcome: 'refused', reason: 'public_key_mismatch' };
    if (source === 'filesystem' && (full || first !== undefined)) this.#noteUnlessFromFile(publicKey);
    if (first !== undefined) return { outcome: 'duplicate', key: first };
    if (full) return { outcome: 'refused', reason: 'too_many_keys' };
    const key: LoadedKey = { publicKey, handle: held.handle, source, loadedAt: this.#clock.now() };
    this.#keys.set(publicKey, key);
    this.#countBySource[source] += 1;
    return { outcome: 'added', key };
  }

  #noteUnlessFromFile(publicKey: string): void {
    if (this.#keys.get(publicKey)?.source !== 'filesystem') this.noteInFile(publicKey);
  }

  /** Undefined for a scalar that is zero or not below the group order. */
  #hold(secretKey: Uint8Array): HeldKey | undefined {
    try {
      return this.#vault.addKey(secretKey);
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }
}
