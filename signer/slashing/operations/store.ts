// The seam of a complete store: rows and a transaction. A store implements it over its own rows, and has its own fast
// check; every other operation is written once, over this seam, in this folder. Rows that come through it passed their
// codes, and histories are shown to be whole; a store throws SignerError `slashing_integrity` where they are not.

import { SignerError } from '../../api/errors.ts';
import type { HistoryCodes } from '../history/codes.ts';
import type { KeyState } from '../history/head.ts';
import type { CodedEntries } from '../history/merge.ts';
import type { Horizon } from '../history/prune.ts';
import type { BlockEntry, HistoryPart, Marks, PublicKeyHex, StoreIdentity, VoteEntry } from '../types.ts';

/** Public keys are 48 bytes, and lists of them ascend. */
export interface CompleteStore {
  readonly codes: HistoryCodes;
  /** One state of the store until it is closed; nothing is locked. */
  snapshot(): Promise<Snapshot>;
  /**
   * All of `work`, durable when it resolves, or nothing. `work` waits for nothing but its rows. `ofImport`: a check
   * that finds its key held by it is answered at once, because it may itself wait for other keys.
   */
  transaction<Result>(work: (rows: WritableRows) => Promise<Result>, ofImport?: boolean): Promise<Result>;
  /** Give each key that has no head a new one, once the heads are shown to be those that the store's record counts. */
  addKeys(publicKeys: readonly Uint8Array[]): Promise<void>;
  /**
   * Change the record of the store; durable when it resolves. `isJump`: no batch that began before is undecided then,
   * and every later one is judged by the changed record.
   */
  changeRecord(change: (before: StoreIdentity) => StoreIdentity, isJump: boolean): Promise<StoreIdentity>;
  /** Let others go on, once so many entries were handled that it is their turn; without a number it is. */
  turn(entries?: number): Promise<void>;
}

export interface StagedImport {
  keysAfter(last: Uint8Array, limit: number): Promise<Uint8Array[]>;
  parts(publicKey: Uint8Array): AsyncIterable<HistoryPart>;
}

export interface Head {
  readonly id: number;
  readonly publicKey: Uint8Array;
  readonly state: KeyState;
}

export interface HistorySink {
  block(entry: BlockEntry): void;
  vote(entry: VoteEntry): void;
}

export interface Rows {
  record(): Promise<StoreIdentity>;
  /** Whether the heads are those that the record counts. */
  isKeyListWhole(): Promise<boolean>;
  /** Those of the keys that have one, in the order of the keys; in a transaction they are locked until it ends. */
  heads(publicKeys: readonly Uint8Array[]): Promise<Head[]>;
  /** The chosen keys among the next that have a head, at most `limit`; not verified. */
  keysAfter(last: Uint8Array, limit: number, chosen: 'all' | 'prunable'): Promise<KeyPage>;
  /** Every entry of the key, ascending; whole when it resolves. */
  history(head: Head, sink: HistorySink): Promise<void>;
  blockAt(head: Head, slot: number): Promise<BlockEntry | undefined>;
}

interface KeyPage {
  readonly keys: readonly Uint8Array[];
  /** Where the next page goes on; undefined: there is none. */
  readonly last: Uint8Array | undefined;
}

export interface Snapshot extends Rows {
  close(): Promise<void>;
}

export interface WritableRows extends Rows {
  /** The lowest entries below a place, so many at most and blocks first, and what is lowest without them. */
  oldest(head: Head, below: Horizon, limit: number): Promise<OldestEntries>;
  change(head: Head, change: KeyChange): Promise<void>;
}

export interface OldestEntries extends CodedEntries {
  /** Null: no other entry of the kind is there. */
  readonly lowestKept: Marks;
}

export interface KeyChange {
  readonly state: KeyState;
  readonly added?: CodedEntries;
  readonly replaced?: CodedEntries;
  readonly removed?: CodedEntries;
}

/** Every key that has a head, in pages. @param keysAfter of one state, or of the present one for each page */
export async function* allKeys(keysAfter: Rows['keysAfter']): AsyncGenerator<readonly Uint8Array[]> {
  for (let after: Uint8Array | undefined = NO_KEY; after !== undefined; ) {
    const page: KeyPage = await keysAfter(after, PAGE_KEYS, 'all');
    yield page.keys;
    after = page.last;
  }
}

export const PAGE_KEYS = 200;
export const NO_KEY: Uint8Array = new Uint8Array(0);
export const HEADS_ARE_GONE = 'heads of keys are gone from the slashing database';

/** A sink that keeps all of a history. */
export function historyCollector() {
  const history = { blocks: [] as BlockEntry[], attestations: [] as VoteEntry[] };
  const sink: HistorySink = {
    block: (entry) => void history.blocks.push(entry),
    vote: (entry) => void history.attestations.push(entry),
  };
  return { history, sink };
}

export async function inSnapshot<Result>(store: CompleteStore, work: (rows: Rows) => Promise<Result>): Promise<Result> {
  const snapshot = await store.snapshot();
  try {
    return await work(snapshot);
  } finally {
    await snapshot.close();
  }
}

/** @throws SignerError slashing_unavailable when the signal aborts first */
export async function unlessAborted(signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new SignerError('slashing_unavailable', { cause: signal.reason }));
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await Promise.race([work(), promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

export function isDamaged(error: unknown): boolean {
  return error instanceof SignerError && error.reason === 'slashing_integrity';
}

export function keyBytes(publicKey: PublicKeyHex): Uint8Array {
  return Buffer.from(publicKey.slice(2), 'hex');
}

export function keyHex(publicKey: Uint8Array): PublicKeyHex {
  return `0x${Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.length).toString('hex')}`;
}

/** Ascending, each key once: the order in which every signer locks. */
export function sortedKeys(publicKeys: Iterable<PublicKeyHex>): Uint8Array[] {
  return [...new Set(publicKeys)].sort().map(keyBytes);
}

/** Entries of a turn, about: a few milliseconds. */
export const STEP_ENTRIES = 1000;
