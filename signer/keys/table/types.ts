// The seam between the key table and key management (specification/tables.md#key-table). Rows that fail their integrity
// check are left out of every answer but `existing`; `delete` removes them too. After `key_table_unavailable` the
// outcome of a write is unknown, and repeating it is safe.

export type KeyStatus = 'active' | 'inactive';

/** One element of a deposit data file, as the staking deposit tool writes it: hex without 0x, amount in gwei. */
export interface StoredDeposit {
  readonly pubkey: string;
  readonly withdrawal_credentials: string;
  readonly amount: number;
  readonly signature: string;
  readonly deposit_message_root: string;
  readonly deposit_data_root: string;
  readonly fork_version: string;
  readonly network_name: string;
  readonly deposit_cli_version: string;
}

export interface TableKey {
  readonly publicKey: string;
  readonly status: KeyStatus;
  readonly generation: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly hasBackup: boolean;
  readonly deposit: StoredDeposit | undefined;
}

export interface NewTableKey {
  /** 32 bytes, big endian; the caller wipes them. */
  readonly secretKey: Uint8Array;
  readonly publicKey: string;
  readonly status: KeyStatus;
  readonly backup?: string | undefined;
  readonly deposit?: StoredDeposit | undefined;
}

export interface KeyTable {
  /** Ascending by shard and public key; a page may be shorter than `limit` and still have a next one. */
  list(options: {
    readonly status?: KeyStatus | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<{ readonly keys: readonly TableKey[]; readonly nextCursor?: string | undefined }>;
  get(publicKeys: readonly string[]): Promise<ReadonlyMap<string, TableKey>>;
  /** Those that have a row, whether it is ours or refused: one that is refused today may be put right tomorrow. */
  existing(publicKeys: readonly string[]): Promise<ReadonlySet<string>>;
  /** Durable when it resolves. After `created` the caller may add the key to the KeyStore with source `dynamodb`. */
  create(keys: readonly NewTableKey[]): Promise<ReadonlyMap<string, 'created' | 'duplicate'>>;
  setStatus(
    changes: readonly { readonly publicKey: string; readonly status: KeyStatus }[],
  ): Promise<ReadonlyMap<string, 'updated' | 'unchanged' | 'not_found'>>;
  /** `existing`: the same data is there; `conflict`: other data is there and `replace` is false. */
  setDeposit(
    publicKey: string,
    deposit: StoredDeposit,
    options: { readonly replace: boolean },
  ): Promise<'created' | 'existing' | 'conflict' | 'not_found'>;
  delete(publicKeys: readonly string[]): Promise<ReadonlyMap<string, 'deleted' | 'not_found'>>;
  /** Of those that have a row; undefined of one that was made, or imported, without a backup. */
  backupsOf(publicKeys: readonly string[]): Promise<ReadonlyMap<string, string | undefined>>;
  /** The plaintext secret, for deposit signatures; the caller wipes it. */
  secretOf(publicKey: string): Promise<Buffer | undefined>;
}

export interface KeyTableLoader {
  /**
   * Withhold, remove the keys from the KeyStore, wait for their signatures, change their rows, release: the next
   * refresh then loads what the table says.
   */
  withhold(publicKeys: readonly string[]): () => void;
  refresh(): Promise<void>;
  hasRow(publicKey: string): boolean;
  /** Statuses that the configuration loads; what it does not load does not sign. */
  readonly statusFilter: ReadonlySet<KeyStatus>;
}
