// The keys that can sign. The list of keys is one complete set or an error: validator clients drop a validator that
// vanishes from it (specification/signing.md#public-keys).

import assert from 'node:assert/strict';
import { encodeHex } from '../../common/formats/hex.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { KeyShare } from '../api/distributed.ts';
import { SignerError } from '../api/errors.ts';
import { ended, isEndedTenure, TenureBook } from '../tenure.ts';
import { ListedKeys } from './listed-keys.ts';
import {
  type AddedKey,
  type ExpectedKey,
  isSameForm,
  type KeyRefusal,
  type KeySource,
  type LoadedKey,
} from './loaded-key.ts';
import { sortInPieces } from './merge-sorted.ts';
import type { HeldKey, SecretKeyVault } from './vault.ts';

/** loading: keys can sign as they come, the list waits for the first complete load. sealed: empty for good. */
type KeyStoreState = 'loading' | 'ready' | 'sealed';

/** Changes that the list shows all at once. Added keys can sign at once; removed ones can until the end. */
export interface KeyBatch {
  add(secretKey: Uint8Array, source: KeySource, expected?: ExpectedKey): AddedKey;
  /**
   * 32 bytes each; the caller wipes its copies as soon as this returns. Each goes on to `addHeld` or to `letGo`.
   * @returns in order; undefined for what is no secret key. Rejects, and holds none: SignerError `sealed`,
   * `signing_unavailable` when a signing worker ended, Error when there is no memory for them
   */
  hold(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]>;
  /** As `add`; what it does not add it lets go. */
  addHeld(held: HeldKey | undefined, source: KeySource, expected?: ExpectedKey): AddedKey;
  letGo(held: HeldKey | undefined): void;
  remove(publicKey: string): void;
}

/** Fewer than a core holds: a key is held before it is found to be one too many, or to be there already. */
const MAX_LOADED_KEYS = 1_000_000;

type HeldCopy = Omit<LoadedKey, 'tenure' | 'share'> & { tenure: number; share?: KeyShare };

export class KeyStore {
  readonly #vault: SecretKeyVault;
  readonly #clock: Clock;
  readonly #tenures: TenureBook;
  readonly #refused = new Set<string>();
  readonly #maximumKeys: number;
  readonly #keys = new Map<string, HeldCopy>();
  /** Keys that a change has stopped and that it may give back. */
  readonly #aside = new Map<string, HeldCopy>();
  /** Own public keys of shares: in a whole key, or in a share of another key, the secret would have other records. */
  readonly #ofShares = new Set<string>();
  readonly #countBySource: Record<KeySource, number> = { filesystem: 0, dynamodb: 0, memory: 0 };
  /** Keys that a key file holds or names although its copy is not the loaded one: the next start may load it. */
  readonly #alsoInFiles = new Set<string>();
  /** Of keystores that say it. */
  readonly #derivationPaths = new Map<string, string>();
  /** What each batch that has not ended has added: these keys sign and are not listed. */
  readonly #openBatches = new Set<Set<string>>();
  #state: KeyStoreState = 'loading';
  readonly #listed = new ListedKeys();

  constructor(
    options: { readonly maximumKeys?: number },
    parts: { readonly vault: SecretKeyVault; readonly clock: Clock; readonly tenures?: TenureBook },
  ) {
    this.#vault = parts.vault;
    this.#clock = parts.clock;
    this.#tenures = parts.tenures ?? new TenureBook(async () => new Map());
    this.#maximumKeys = options.maximumKeys ?? MAX_LOADED_KEYS;
  }

  get state(): KeyStoreState {
    return this.#state;
  }

  find(publicKey: string): LoadedKey | undefined {
    return this.#keys.get(publicKey);
  }

  /** Also of a key that is set aside. Undefined for a whole key, and for one that is not here. */
  shareOf(publicKey: string): KeyShare | undefined {
    return (this.#keys.get(publicKey) ?? this.#aside.get(publicKey))?.share;
  }

  /** Whichever copy of it is loaded. Complete when the first load is. */
  isInFile(publicKey: string): boolean {
    return this.#keys.get(publicKey)?.source === 'filesystem' || this.#alsoInFiles.has(publicKey);
  }

  derivationPathOf(publicKey: string): string | undefined {
    return this.#derivationPaths.get(publicKey);
  }

  noteDerivationPath(publicKey: string, path: string | undefined): void {
    if (path !== undefined && this.#keys.has(publicKey)) this.#derivationPaths.set(publicKey, path);
  }

  noteInFile(publicKey: string): void {
    this.#alsoInFiles.add(publicKey);
  }

  /** Each key that isInFile, some twice. The store may change while they are walked. */
  *inFiles(): Generator<string> {
    for (const { publicKey, source } of this.#keys.values()) if (source === 'filesystem') yield publicKey;
    yield* this.#alsoInFiles;
  }

  forgetFilesOf(publicKeys: Iterable<string>): void {
    for (const publicKey of publicKeys) this.#alsoInFiles.delete(publicKey);
  }

  alsoInFiles(): ReadonlySet<string> {
    return this.#alsoInFiles;
  }

  /** @param secretKey 32 bytes, big endian; the caller wipes its copy @param tenure as the store said unless given */
  add(secretKey: Uint8Array, source: KeySource, expected?: ExpectedKey, tenure?: number): AddedKey {
    const added = this.#take(secretKey, source, expected, tenure);
    if (added.outcome === 'added') this.#listed.add(added.key.publicKey);
    return added;
  }

  /** Of a secret key that only the core sees; undefined when it is none. @throws SignerError `sealed` */
  publicKeyOf(secretKey: Uint8Array): string | undefined {
    this.#assertNotSealed();
    const held = this.#hold(secretKey);
    if (held !== undefined) this.#vault.removeKey(held.handle);
    return held && encodeHex(held.publicKey);
  }

  /** The sources of these keys, or of all, were just read. @throws SignerError slashing_*: copies stay as they are */
  async renewTenures(publicKeys?: readonly string[]): Promise<void> {
    await this.#tenures.learn(publicKeys);
    for (const publicKey of publicKeys ?? this.#keys.keys()) {
      const key = this.#keys.get(publicKey);
      const tenure = this.#tenures.of(publicKey);
      if (key !== undefined) key.tenure = tenure; // in place: it is the same copy
    }
  }

  /** The slashing store refused a copy of this tenure: it signs nothing until its source is read again. */
  noteRefused(publicKey: string, tenure: number): void {
    const key = this.#keys.get(publicKey);
    if (key === undefined) return;
    this.#refused.add(publicKey);
    if (key.tenure === tenure) endTenureOf(key); // not one that was renewed while the store was asked
  }

  /** By the request that began it, which read the key's source itself. */
  takeTenure(publicKey: string, tenure: number): void {
    const key = this.#keys.get(publicKey);
    if (key !== undefined) key.tenure = tenure;
  }

  /** A copy whose row says inactive signs nothing, whatever store is asked. */
  retire(publicKey: string): void {
    const key = this.#keys.get(publicKey);
    if (key !== undefined) endTenureOf(key);
  }

  takeRefused(source: KeySource): readonly string[] {
    const refused = [...this.#refused].filter((publicKey) => this.#keys.get(publicKey)?.source === source);
    for (const publicKey of refused) this.#refused.delete(publicKey);
    return refused;
  }

  /** Listed and held, but not found: nothing new is signed with it until `putBack`. */
  setAside(publicKey: string): LoadedKey | undefined {
    const key = this.#keys.get(publicKey);
    if (key === undefined) return undefined;
    this.#keys.delete(publicKey);
    this.#aside.set(publicKey, key);
    return key;
  }

  /** @param tenure the ended one, when its change has come that far */
  putBack(publicKey: string, tenure?: number): void {
    const key = this.#aside.get(publicKey);
    if (key === undefined) return; // removed, or sealed meanwhile
    this.#aside.delete(publicKey);
    if (tenure !== undefined) key.tenure = tenure;
    this.#keys.set(publicKey, key);
  }

  /** The key is not found any more before its secret is wiped. */
  remove(publicKey: string): LoadedKey | undefined {
    const key = this.#keys.get(publicKey) ?? this.#aside.get(publicKey);
    if (key === undefined) return undefined;
    this.#keys.delete(publicKey);
    this.#aside.delete(publicKey);
    this.#refused.delete(publicKey);
    this.#derivationPaths.delete(publicKey);
    for (const added of this.#openBatches) added.delete(publicKey);
    this.#listed.remove(publicKey);
    this.#ofShares.delete(key.share?.publicKey ?? '');
    this.#countBySource[key.source] -= 1;
    this.#vault.removeKey(key.handle);
    if (key.source === 'filesystem') this.noteInFile(publicKey); // the file is still there
    return key;
  }

  /** When it throws, what it added is listed (those keys do sign) and what it wanted removed stays. */
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
      add: (secretKey, source, expected) => {
        assertOpen();
        return noted(this.#take(secretKey, source, expected));
      },
      hold: async (secretKeys) => {
        this.#assertNotSealed();
        try {
          return await this.#vault.addKeys(secretKeys);
        } catch (error) {
          this.#assertNotSealed(); // meanwhile
          throw error;
        }
      },
      addHeld: (held, source, expected) => {
        assertOpen();
        return noted(this.#takeHeld(held, source, expected));
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

  completeFirstLoad(): void {
    if (this.#state === 'loading') this.#state = 'ready';
  }

  assertReady(): void {
    if (this.#state === 'loading') throw new SignerError('starting', { hint: 'its keys are still being loaded' });
    this.#assertNotSealed();
  }

  #assertNotSealed(): void {
    if (this.#state === 'sealed') throw new SignerError('sealed');
  }

  /** Ascending: the same array until something changes. @throws SignerError as assertReady */
  publicKeys(): readonly string[] {
    this.assertReady();
    return this.#listed.ascending();
  }

  countBySource(): Readonly<Record<KeySource, number>> {
    return { ...this.#countBySource };
  }

  seal(): void {
    this.#state = 'sealed';
    this.#keys.clear();
    this.#aside.clear();
    this.#ofShares.clear();
    this.#refused.clear();
    this.#derivationPaths.clear();
    for (const added of this.#openBatches) added.clear();
    this.#listed.clear();
    this.#alsoInFiles.clear();
    Object.assign(this.#countBySource, { filesystem: 0, dynamodb: 0, memory: 0 });
    this.#vault.wipe();
  }

  #take(secretKey: Uint8Array, source: KeySource, expected?: ExpectedKey, tenure?: number): AddedKey {
    if (this.#state === 'sealed') return { outcome: 'refused', reason: 'sealed' };
    return this.#takeHeld(this.#hold(secretKey), source, expected, tenure);
  }

  #takeHeld(held: HeldKey | undefined, source: KeySource, expected?: ExpectedKey, tenure?: number): AddedKey {
    if (held === undefined) return { outcome: 'refused', reason: 'invalid_secret_key' };
    if (this.#state === 'sealed') {
      this.#vault.removeKey(held.handle);
      return { outcome: 'refused', reason: 'sealed' };
    }
    const share = typeof expected === 'object' ? expected : undefined;
    const own = encodeHex(held.publicKey);
    const publicKey = share?.compositePublicKey ?? own;
    const first = this.#keys.get(publicKey) ?? this.#aside.get(publicKey);
    const isOtherKey = this.#ofShares.has(own) && first?.share?.publicKey !== own;
    const isOfShare = isOtherKey || (share !== undefined && (this.#keys.has(own) || this.#aside.has(own)));
    const mismatch = isOfShare ? 'held_otherwise' : mismatchOf(own, expected, this.#vault);
    const full = this.#keys.size + this.#aside.size >= this.#maximumKeys;
    if (mismatch !== undefined || first !== undefined || full) this.#vault.removeKey(held.handle);
    if (mismatch !== undefined) return { outcome: 'refused', reason: mismatch };
    if (source === 'filesystem' && (full || first !== undefined)) this.#noteUnlessFromFile(publicKey);
    if (first !== undefined && isSameForm(first.share, share)) return { outcome: 'duplicate', key: first };
    if (first !== undefined) return { outcome: 'refused', reason: 'held_otherwise', publicKey };
    if (full) return { outcome: 'refused', reason: 'too_many_keys', publicKey };
    const key: HeldCopy = {
      publicKey,
      handle: held.handle,
      source,
      loadedAt: Math.floor(this.#clock.now() / 1000),
      tenure: tenure ?? this.#tenures.of(publicKey),
    };
    this.#keys.set(publicKey, key);
    if (share !== undefined) {
      key.share = share; // not a member of whole keys, of which there may be a million
      this.#ofShares.add(own);
    }
    this.#countBySource[source] += 1;
    return { outcome: 'added', key };
  }

  #noteUnlessFromFile(publicKey: string): void {
    if (this.#keys.get(publicKey)?.source !== 'filesystem') this.noteInFile(publicKey);
  }

  #hold(secretKey: Uint8Array): HeldKey | undefined {
    try {
      return this.#vault.addKey(secretKey);
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }
}

/** Why a secret key of this public key is not the expected one. */
function mismatchOf(publicKey: string, expected: ExpectedKey, vault: SecretKeyVault): KeyRefusal | undefined {
  if (expected === undefined || expected === publicKey) return undefined;
  if (typeof expected === 'string' || expected.publicKey !== publicKey) return 'public_key_mismatch';
  if (vault.sharePublicKey === undefined) return 'share_unsupported';
  const points = Buffer.concat(expected.commitments.map((point) => Buffer.from(point.slice(2), 'hex')));
  const committed = vault.sharePublicKey(points, expected.participantId);
  return committed !== undefined && encodeHex(committed) === publicKey ? undefined : 'share_mismatch';
}

function endTenureOf(key: HeldCopy): void {
  if (!isEndedTenure(key.tenure)) key.tenure = ended(key.tenure); // in place: it is the same copy
}
