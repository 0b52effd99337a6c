// The questions to slashing protection, and its answers. Backends implement SlashingBackend. The signing path sees only
// SlashingProtection (protection.ts), which groups requests and remembers what this process has signed.

import type { Witness } from '../../common/observe/clock.ts';
import type { LogFields } from '../../common/observe/log.ts';
import { type DOUBT_CAUSES, SignerError, type SLASHING_KEY_FAULTS, type SLASHING_REFUSALS } from '../api/errors.ts';
import type { Tenures } from '../tenure.ts';

/** `0x` and 96 lower-case hex digits. */
export type PublicKeyHex = string;

/** Slots and epochs are safe integers (at most 2^53 - 1): the wire and the interchange importer refuse larger ones. */
export interface VoteEpochs {
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
}

interface MessageOfKey {
  readonly publicKey: PublicKeyHex;
  /** The tenure of the copy that would sign (tenure.ts); 0 when it is left out. */
  readonly tenure?: number;
  /** 32 bytes. */
  readonly signingRoot: Uint8Array;
}

export interface BlockProposal extends MessageOfKey {
  readonly kind: 'block';
  readonly slot: number;
}

export interface Vote extends MessageOfKey, VoteEpochs {
  readonly kind: 'attestation';
}

export type SlashableMessage = BlockProposal | Vote;

/**
 * Why a message is refused. The conditions are those of EIP-3076:
 * `double_block` 1, another block at this slot, or one without a root; `block_below_low_water_mark` 2;
 * `double_vote` 3, another vote for this target, or one without a root; `surrounding_vote` and `surrounded_vote` 3;
 * `source_after_target`, no valid vote; `source_below_low_water_mark` 4; `target_below_low_water_mark` 5;
 * `key_retired`, the key left this store, or the copy that asks is of an earlier tenure (`endTenures`).
 */
export type SlashingRefusal = (typeof SLASHING_REFUSALS)[number];

/**
 * `unavailable` verdicts concern one key only (its record fails its check, or another transaction holds it: nothing was
 * decided or recorded); the rest of the batch is good.
 */
export type SlashingVerdict =
  | { readonly kind: 'safe'; readonly repeat: boolean }
  | { readonly kind: 'refused'; readonly reason: SlashingRefusal }
  | { readonly kind: 'unavailable'; readonly reason: KeyFault; readonly hint?: string };

export type KeyFault = (typeof SLASHING_KEY_FAULTS)[number];

/** A slot and epochs of a key: the highest, or the low-water marks (EIP-3076); null where there is none. */
export interface Marks {
  readonly slot: number | null;
  readonly sourceEpoch: number | null;
  readonly targetEpoch: number | null;
}

export type KeyMarks = ReadonlyMap<PublicKeyHex, Marks>;

export interface BlockEntry {
  readonly slot: number;
  /** 32 bytes; null, as of an EIP-3076 entry without `signing_root`, refuses everything at the slot. */
  readonly signingRoot: Uint8Array | null;
}

export interface VoteEntry extends VoteEpochs {
  readonly signingRoot: Uint8Array | null;
}

export interface KeyHistory {
  readonly blocks: readonly BlockEntry[];
  readonly attestations: readonly VoteEntry[];
}

/** What a file says of a key. */
export interface HistoryPart extends KeyHistory {
  readonly leftOut?: LeftOutEntries | undefined;
}

/** A stream of these may name a key several times: a store merges all parts of one import together. */
export interface ValidatorHistory extends HistoryPart {
  readonly publicKey: PublicKeyHex;
  /** Where it was read, when that was not an interchange file. */
  readonly place?: string;
}

/**
 * Entries that a reader left out of a history, because they lie far behind the highest ones (interchange/reduce.ts):
 * their highest slot and epochs, which a store refuses up to, and how many there were, for the numbers of the import.
 */
export interface LeftOutEntries extends Marks {
  readonly blocks: number;
  readonly attestations: number;
}

/**
 * How a file is merged with the records of a key: `by_key` (the rule): a key that the store has records of as
 * `minimal`, a key that is new to it with the file's entries; `minimal`: everything at or below the file's highest
 * entries is refused, for new keys too; `complete`: the complete strategy of EIP-3076, for an operator who knows that
 * the file lists everything the key ever signed.
 */
export type MergeStrategy = 'by_key' | 'minimal' | 'complete';

export interface ImportOptions {
  /** `by_key` unless given; dynamodb, which keeps the highest marks only, merges every file as minimal. */
  readonly strategy?: MergeStrategy;
  /** Takes what lies ahead of the clock, too: its keys sign nothing until then. An operator's own word. */
  readonly acceptsFuture?: boolean;
}

/**
 * What a store refuses of every key, whatever it knows of the key: blocks at or below the slot, votes with a target at
 * or below the target epoch or a source below the source epoch. Raised by a jump; one of the future may be lowered.
 */
export interface StoreFloor extends VoteEpochs {
  readonly slot: number;
}

export type DoubtCause = (typeof DOUBT_CAUSES)[number];
export type OnJump = (cause: DoubtCause) => void;

/** That records may have been lost, and why (doubt/doubts.ts). */
export interface Doubt {
  readonly cause: DoubtCause;
  readonly facts?: LogFields;
  /** Whether the store says that it is over: another signer may have raised it since. */
  readonly isOver?: () => Promise<boolean>;
}

/** Nothing was decided: ask again when the doubt is settled. */
export class StoreInDoubt extends SignerError {
  readonly doubt: Doubt;

  constructor(doubt: Doubt) {
    super('slashing_unavailable', { detail: { doubt: doubt.cause } });
    this.doubt = doubt;
  }
}

export interface StoreIdentity {
  /** 32 lower-case hex digits, random, made with the store and never changed. */
  readonly id: string;
  /** incarnation.ts: what tells it from its copies. */
  readonly incarnation: string;
  readonly floor: StoreFloor | null;
}

export interface EntryCounts {
  readonly validators: number;
  readonly blocks: number;
  readonly attestations: number;
}

export interface ImportSummary extends EntryCounts {
  readonly alreadyPresent: number;
  /** Entries that are slashable against each other or against the history; merged all the same, never weakening. */
  readonly conflicts: number;
  readonly conflicting: readonly ImportConflict[];
}

export type ConflictingEntry = { readonly slot: number } | VoteEpochs;
export type ImportConflict = ConflictingEntry & { readonly publicKey: PublicKeyHex };

export interface BatchLimits {
  readonly maxMessages: number;
  readonly maxInFlight: number;
  /** Between the starts of two batches while requests keep coming. A lone request never waits. */
  readonly minIntervalMs: number;
}

/**
 * One store of signing history. Every method rejects with SignerError `slashing_unavailable` when the store cannot be
 * used, and leaves no key half done. Implementations: sqlite, postgres, dynamodb, noop.
 */
export interface SlashingBackend {
  readonly name: 'sqlite' | 'postgres' | 'dynamodb' | 'noop';
  readonly batchLimits: BatchLimits;
  /** The clock of the service or the server that keeps it; undefined where there is none. */
  readonly witness?: Witness;
  /** That of its opening, until a jump; a store has others in its answers, and throws StoreInDoubt. */
  readonly doubt?: Doubt | undefined;

  /**
   * Check and record each message, atomically and durably: when the promise resolves, every message with a `safe`
   * verdict is on disk. A batch names each public key at most once (protection.ts sees to it). Verdicts are in the
   * order of the messages. On rejection nothing, or everything, or a part may be recorded: the caller signs nothing.
   * `floors[i]` is what this process knows to have been recorded for the key of message i: a backend that holds less
   * answers `slashing_rollback` for it, records nothing of the batch, and calls no other message of it safe.
   */
  checkAndRecord(messages: readonly SlashableMessage[], floors: readonly Marks[]): Promise<SlashingVerdict[]>;

  /**
   * The signing root that the store holds for the key's block at this slot, 32 bytes. Null: it holds none. So it is of
   * a block that was never signed here, that was pruned or imported without its root, or (dynamodb) that is not the
   * key's last one. Nothing is recorded. Rejects with `slashing_integrity` when the record of the key fails its code.
   */
  signedBlockRoot(publicKey: PublicKeyHex, slot: number): Promise<Uint8Array | null>;

  /** Resolves when the store answers a real query. */
  checkHealth(signal: AbortSignal): Promise<void>;

  /** Strongly consistent. Rejects with `slashing_integrity` when the record of the store fails its code. */
  identity(): Promise<StoreIdentity>;

  /** Compare and set the incarnation; durable when it resolves with true. False: it is another by now. */
  incarnate(expected: string, next: string): Promise<boolean>;

  /**
   * Raise the floor, member by member, for every key and signer of this store; tenures stay. When the promise resolves
   * the floor is durable, no batch that began before is still undecided, and every later check is judged by it.
   * `lowers`: lower it instead, while no other process uses the store; what keys have signed and imported stays.
   */
  jump(floor: StoreFloor, lowers?: boolean): Promise<StoreIdentity>;

  /**
   * The tenures of these keys, or of all that are not in tenure 0. `leavesOutDamaged`: a key whose head is damaged is
   * left out, where one is an error otherwise.
   */
  tenures(publicKeys?: readonly PublicKeyHex[], leavesOutDamaged?: boolean): Promise<Tenures>;

  /**
   * End the present tenure of each key, also of keys that the store has no records of, and of ended ones once more.
   * Durable when it resolves, with the new numbers; from then on every check of an earlier tenure is refused with
   * `key_retired`, by every signer of this store. On rejection any of them may be ended.
   */
  endTenures(publicKeys: readonly PublicKeyHex[]): Promise<Tenures>;

  /**
   * Begin the next tenure of each key whose tenure is still the ended one that was read (`from`); records stay. A key
   * that is in an open tenure is left alone. Resolves with the keys that are begun now, and their numbers.
   */
  beginTenures(from: Tenures): Promise<Tenures>;

  /** Of each of these keys, or of all, with a mark beyond the floor, its highest ones; of damaged keys none. */
  marksBeyond(floor: StoreFloor, publicKeys?: readonly PublicKeyHex[]): Promise<KeyMarks>;

  /**
   * Forget what a key whose tenure has ended has signed, by the word of its operator: everything up to the floor is
   * refused in its place. Durable when it resolves. False: the key is in an open tenure, and nothing was changed.
   */
  startAfresh(publicKey: PublicKeyHex, floor: StoreFloor): Promise<boolean>;

  /**
   * Merge histories, never weakening what is there. A file is refused as a whole when it is wrong (its reader throws,
   * or a key that it names is damaged); a merge that is interrupted is repeated, and was never weaker.
   */
  importHistories(histories: AsyncIterable<ValidatorHistory>, options?: ImportOptions): Promise<ImportSummary>;

  /**
   * The whole history, or that of the given keys, one key at a time in ascending order, from one consistent state.
   * With a floor, every key that is named has a history: at least what the floor says.
   */
  exportHistories(publicKeys?: readonly PublicKeyHex[]): AsyncIterable<ValidatorHistory>;

  /** Delete a bounded number of entries behind the low-water mark; resolves with how many (0: nothing left to do). */
  pruneStep(maxEntries: number): Promise<number>;

  status(): Promise<EntryCounts & { readonly genesisValidatorsRoot: string }>;

  /**
   * @param waitMs how long it may wait for a store that does not answer, at most
   * @param isInDoubt a file is not noted as closed in order, so that its next start jumps
   */
  close(waitMs?: number, isInDoubt?: boolean): Promise<void>;
}
