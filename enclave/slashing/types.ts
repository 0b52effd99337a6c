// What slashing protection is asked and what it answers. Backends implement SlashingBackend; the signing path sees
// only SlashingProtection (protection.ts), which groups requests and remembers what this process has signed.

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

export interface AttestationVote {
  readonly kind: 'attestation';
  readonly publicKey: PublicKeyHex;
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
  /** 32 bytes. */
  readonly signingRoot: Uint8Array;
}

export type SlashableMessage = BlockProposal | AttestationVote;

/** Why a message is refused, each with the EIP-3076 condition it comes from; the names are reasons of api/errors.ts. */
export type SlashingRefusal =
  | 'double_block' // condition 1: another block at this slot, or one without a root
  | 'block_below_low_water_mark' // condition 2
  | 'double_vote' // condition 3: another vote for this target, or one without a root
  | 'surrounding_vote' // condition 3
  | 'surrounded_vote' // condition 3
  | 'source_after_target' // source epoch larger than target epoch: no valid vote
  | 'source_below_low_water_mark' // condition 4
  | 'target_below_low_water_mark'; // condition 5

/**
 * `unavailable` verdicts concern one key only (its record fails its check, or somebody else holds it: nothing was decided
 * or recorded); the rest of the batch is good.
 */
export type Verdict =
  | { readonly kind: 'safe'; readonly repeat: boolean }
  | { readonly kind: 'refused'; readonly reason: SlashingRefusal }
  | { readonly kind: 'unavailable'; readonly reason: KeyFault };

export type KeyFault = 'slashing_integrity' | 'slashing_rollback' | 'slashing_unavailable';

/** The highest slot and epochs known for a key; null where there is none. */
export interface HighWaterMarks {
  readonly blockSlot: number | null;
  readonly sourceEpoch: number | null;
  readonly targetEpoch: number | null;
}

/** One key's part of an EIP-3076 file. A null root is an entry without `signing_root`: it refuses everything there. */
export interface ValidatorHistory {
  readonly publicKey: PublicKeyHex;
  readonly blocks: readonly { readonly slot: number; readonly signingRoot: Uint8Array | null }[];
  readonly attestations: readonly {
    readonly sourceEpoch: number;
    readonly targetEpoch: number;
    readonly signingRoot: Uint8Array | null;
  }[];
}

export interface ImportOptions {
  /**
   * The file is the end of a history whose middle is nowhere: what lies at or below its highest entries is refused, also
   * where this store has older entries of its own and would otherwise find it safe.
   */
  readonly asMinimal?: boolean;
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
}

/** How the grouping in front of a backend feeds it. */
export interface BatchLimits {
  /** Messages in one batch at most. */
  readonly maxMessages: number;
  /** Batches under way at once at most. */
  readonly maxInFlight: number;
  /** Milliseconds between the starts of two batches while requests keep coming; 0 for none. A lone request never waits. */
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

  /** Merge histories: all or nothing, never weakening what is there. */
  importHistories(histories: AsyncIterable<ValidatorHistory>, options?: ImportOptions): Promise<ImportSummary>;

  /** The whole history, or that of the given keys, one key at a time in ascending order, from one consistent state. */
  exportHistories(publicKeys?: readonly PublicKeyHex[]): AsyncIterable<ValidatorHistory>;

  /** Delete a bounded number of entries behind the low-water mark; resolves with how many (0: nothing left to do). */
  pruneStep(maxEntries: number): Promise<number>;

  /** For `strongroom slashing status`. */
  status(): Promise<{ validators: number; blocks: number; attestations: number; genesisValidatorsRoot: string }>;

  close(): Promise<void>;
}
