// Keys that come and go while the signer runs: what the Key Manager API and the chamber's key routes do it with. Each
// key is dealt with by its sources: memory here, the table through its rows, files not at all; until every source is
// read nobody knows them, and nothing is done. A key signs only after the slashing protection records that came with it
// are merged, and its records are exported only after its last signature.

import type { Log } from '../../../observe/log.ts';
import type { ImportedKeystore } from '../files/imported-seal.ts';
import type { DepositNetwork } from '../generation/deposit.ts';
import type { GenerateOptions } from '../generation/generate.ts';
import type { KeystorePool } from '../keystores/pool.ts';
import type { KeyStore } from '../store.ts';
import type { KeyTable, KeyTableLoader } from '../table/types.ts';
import type { KeyTurns } from '../turns.ts';

/** Whether the caller may do this to the key; one that it may not refuses the whole request. */
export type Allows = (publicKey: string) => boolean;

/** EIP-3076 files of the configured slashing protection. */
export interface SlashingFiles {
  /**
   * All or nothing.
   * @throws SignerError `malformed_body`, also for another network; `denied` for a key that is not allowed
   */
  merge(interchange: string, allows: Allows): Promise<void>;
  /** `recorded` are the keys that the file says something about. */
  export(publicKeys: readonly string[]): Promise<{ readonly file: string; readonly recorded: ReadonlySet<string> }>;
  /** Every signer of the store refuses these keys from then on; durable when it resolves. */
  retire(publicKeys: readonly string[]): Promise<void>;
  /** Those of the keys that are retired. */
  retired(publicKeys: readonly string[]): Promise<readonly string[]>;
  /**
   * @throws SignerError when this signer has lost its store to another one: what was read of it is no promise any more
   */
  assertInForce(): void;
  /** Take `retire` back. Resolves with the keys that were retired. */
  reinstate(publicKeys: readonly string[]): Promise<readonly string[]>;
}

export interface TableParts {
  readonly rows: KeyTable;
  readonly loader: KeyTableLoader;
}

/** What generates keys beyond the rest of management. */
export interface GenerationOptions {
  /** `chamber.keys.backup.recipients` */
  readonly backupRecipients: readonly string[];
  readonly network: DepositNetwork;
  /** Where a key's randomness comes from; the system's CSPRNG unless given. */
  readonly fillRandom?: GenerateOptions['fillRandom'];
}

/** Where imported keystores are kept beyond the end of this process (keys/files/imported-keystores.ts). */
export interface ImportedFiles {
  /** Durable when it resolves, with those keys that had no file before. Does not wipe the passwords. */
  keep(keystores: readonly ImportedKeystore[]): Promise<readonly string[]>;
  /** Durable when it resolves; also of keys that have no file. */
  remove(publicKeys: readonly string[]): Promise<void>;
}

export interface KeyManagementParts {
  readonly store: KeyStore;
  readonly pool: KeystorePool;
  /** Undefined without `key_sources.dynamodb`. */
  readonly table: TableParts | undefined;
  /** Undefined without `key_sources.memory.persist_dir`: what is imported into memory is gone with this process. */
  readonly imported?: ImportedFiles | undefined;
  readonly slashing: SlashingFiles;
  /** Resolves when none of the keys is signing. */
  readonly drain: (publicKeys: readonly string[]) => Promise<void>;
  /** One change of a key at a time, for whoever shares this store. */
  readonly turns: KeyTurns;
  readonly log: Log;
}
