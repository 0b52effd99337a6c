// The questions to slashing protection, and its answers. Backends implement SlashingBackend. The signing path sees only
// SlashingProtection (protection.ts), which groups requests and remembers what this process has signed.

import type { SLASHING_KEY_FAULTS, SLASHING_REFUSALS } from '../api/errors.ts';

/** `0x` and 96 lower-case hex digits. */
export type PublicKeyHex = string;

/** Slots and epochs are safe integers (at most 2^53 - 1): the wire and the interchange importer refuse larger ones. */
export interface BlockProposal {
  readonly kind: 'block';
  readonly publicKey: PublicKeyHex;
  readonly slot: number;
  /** 32 bytes. */
  readonly signingRoot: Uint8Array;
}

export interface Vote {
  readonly kind: 'attestation';
  readonly publicKey: PublicKeyHex;
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
  /** 32 bytes. */
  readonly signingRoot: Uint8Array;
}

export type SlashableMessage = BlockProposal | Vote;

/**
 * Why a message is refused. The conditions are those of EIP-3076:
 * `double_block` 1, another block at this slot, or one without a root; `block_below_low_water_mark` 2;
 * `double_vote` 3, another vote for this target, or one without a root; `surrounding_vote` and `surrounded_vote` 3;
 * `source_after_target`, no valid vote; `source_below_low_water_mark` 4; `target_below_low_water_mark` 5;
 * `key_retired`, the key left this store (`retire`).
 */
export type SlashingRefusal = (typeof SLASHING_REFUSALS)[number];

/**
 * `unavailable` verdicts concern one key only (its record fails its check, or somebody else holds it: nothing was
 * decided or recorded); the rest of the batch is good.
 */
export type Verdict =
  | { readonly kind: 'safe'; readonly repeat: boolean }
  | { readonly kind: 'refused'; readonly reason: SlashingRefusal }
  | { readonly kind: 'unavailable'; readonly reason: KeyFault };

export type KeyFault = (typeof SLASHING_KEY_FAULTS)[number];

/** The highest slot and epochs known for a key; null where there is none. */
export interface HighWaterMarks {
  readonly blockSlot: number | null;
  readonly sourceEpoch: number | null;
  readonly targetEpoch: number | null;
}

/**
 * One key's part of an EIP-3076 file. A null root is an entry without `signing_root`: it refuses everything there.
 * A stream of histories may name a key several times: a store merges all parts of one import together.
 */
export interface ValidatorHistory {
  readonly publicKey: PublicKeyHex;
  readonly blocks: readonly { readonly slot: number; readonly signingRoot: Uint8Array | null }[];
  readonly attestations: readonly {
    readonly sourceEpoch: number;
    readonly targetEpoch: number;
    readonly signingRoot: Uint8Array | null;
  }[];
  readonly leftOut?: LeftOutEntries | undefined;
}

/**
 * Entries that a reader left out of a history, because they lie far behind the highest ones (interchange/reduce.ts):
 * their highest slot and epochs, which a store refuses up to, and how many there were, for the numbers of the import.
 */
export interface LeftOutEntries extends HighWaterMarks {
  readonly blocks: number;
  readonly attestations: number;
}

/**
 * How a file is merged beside records of a key: `by_key` (the rule): a key that the store has records of as `minimal`,
 * a key that is new to it with the file's entries; `minimal`: everything at or below the file's highest entries is
 * refused, for new keys too; `complete`: the complete strategy of EIP-3076, for whoever knows that the file lists
 * everything the key ever signed.
 */
export type MergeStrategy = 'by_key' | 'minimal' | 'complete';

export interface ImportOptions {
  /** `by_key` unless given. A store that keeps the highest marks only (dynamodb) merges every file as minimal. */
  readonly strategy?: MergeStrategy;
}

/**
 * What a store refuses of every key, whatever it knows of the key: blocks at or below the slot, votes with a target at
 * or below the target epoch or a source below the source epoch. Raised by a jump, and never lowered.
 */
export interface StoreFloor {
  readonly slot: number;
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
}

/**
 * Why a process jumped: it started, its database is another server or timeline, its store holds less than it knows, or
 * its fleet signed over another store.
 */
export type JumpCause = 'boot' | 'other_server' | 'lost_records' | 'other_store';
export type OnJump = (cause: JumpCause) => void;

/** Which store this is, under the store's integrity code. */
export interface StoreIdentity {
  /** 32 lower-case hex digits, random, made with the store and never changed. */
  readonly id: string;
  /** Counted up while signers use the store: an older copy of the same store has a lower one. */
  readonly revision: number;
  readonly floor: StoreFloor | null;
}

export interface ImportSummary {
  /** Keys named by the import. */
  readonly validators: number;
  readonly blocks: number;
  readonly attestations: number;
  /** Entries that were there already, with the same root. */
  readonly alreadyPresent: number;
  /** Entries that are slashable against each other or against the history; merged all the same, never weakening. */
  readonly conflicts: number;
  /** Which they are, up to a limit (conflicts.ts). */
  readonly conflicting: readonly ImportConflict[];
}

/** An entry by its place: of a block, or of a vote. */
export type ConflictingEntry =
  | { readonly slot: number }
  | { readonly sourceEpoch: number; readonly targetEpoch: number };

export type ImportConflict = ConflictingEntry & { readonly publicKey: PublicKeyHex };

/** How the grouping in front of a backend feeds it. */
export interface BatchLimits {
  /** Messages in one batch at most. */
  readonly maxMessages: number;
  /** Batches under way at once at most. */
  readonly maxInFlight: number;
  /**
   * Milliseconds between the starts of two batches while requests keep coming; 0 for none. A lone request never waits.
   */
  readonly minIntervalMs: number;
}

/**
 * One store of signing history. Every method rejects with SignerError `slashing_unavailable` when the store cannot be
 * used, and leaves nothing half done. Implementations: sqlite, postgres, dynamodb, noop.
 */
export interface SlashingBackend {
  readonly name: 'sqlite' | 'postgres' | 'dynamodb' | 'noop';
  readonly batchLimits: BatchLimits;

  /**
   * Check and record each message, atomically and durably: when the promise resolves, every message with a `safe`
   * verdict is on disk. A batch names each public key at most once (protection.ts sees to it). Verdicts are in the
   * order of the messages. On rejection nothing, or everything, or a part may be recorded: the caller signs nothing.
   * `floors[i]` is what this process knows to have been recorded for the key of message i: a backend that holds less
   * answers `slashing_rollback` for it and records nothing for it.
   */
  checkAndRecord(messages: readonly SlashableMessage[], floors: readonly HighWaterMarks[]): Promise<Verdict[]>;

  /** Resolves when the store answers a real query; rejects otherwise. */
  checkHealth(signal: AbortSignal): Promise<void>;

  /** Strongly consistent. Rejects with `slashing_integrity` when the record of the store fails its code. */
  identity(): Promise<StoreIdentity>;

  /**
   * Raise the revision by one, and at least to `atLeast`; durable when it resolves with the new one.
   * Any number of signers may do it at once; each gets a revision of its own or a later one.
   */
  advance(atLeast?: number): Promise<number>;

  /**
   * Raise the floor, member by member, for every key and every signer of this store. When the promise resolves the
   * floor is durable, no batch that began before is still undecided, and every later check is judged by it. The
   * revision rises too, at least to `revision` when that is given. Retired keys stay retired.
   */
  jump(floor: StoreFloor, options?: { readonly revision?: number }): Promise<StoreIdentity>;

  /** The highest slot and epochs that any key has signed: a clock that is behind them is not believed. */
  highestMarks(): Promise<HighWaterMarks>;

  /**
   * From now on every check of these keys is refused with `key_retired`, by every signer of this store; durable when it
   * resolves. Also keys that the store has no records of. It may be repeated. All keys, or on rejection any of them.
   */
  retire(publicKeys: readonly PublicKeyHex[]): Promise<void>;

  /** Take `retire` back; the records of the keys stay. Resolves with the keys that were retired. */
  reinstate(publicKeys: readonly PublicKeyHex[]): Promise<readonly PublicKeyHex[]>;

  /** Which of these keys, or of all, are retired; ascending. */
  retiredKeys(publicKeys?: readonly PublicKeyHex[]): Promise<readonly PublicKeyHex[]>;

  /** Merge histories: all or nothing, never weakening what is there. */
  importHistories(histories: AsyncIterable<ValidatorHistory>, options?: ImportOptions): Promise<ImportSummary>;

  /**
   * The whole history, or that of the given keys, one key at a time in ascending order, from one consistent state.
   * With a floor, every key that is named has a history: at least what the floor says.
   */
  exportHistories(publicKeys?: readonly PublicKeyHex[]): AsyncIterable<ValidatorHistory>;

  /** Delete a bounded number of entries behind the low-water mark; resolves with how many (0: nothing left to do). */
  pruneStep(maxEntries: number): Promise<number>;

  /** For `strongroom slashing status`. */
  status(): Promise<{ validators: number; blocks: number; attestations: number; genesisValidatorsRoot: string }>;

  /** @param waitMs how long it may wait for a store that does not answer, at most */
  close(waitMs?: number): Promise<void>;
}
