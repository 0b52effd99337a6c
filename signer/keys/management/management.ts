// What the Key Manager API and the chamber's key routes change keys with. Until every source is read, a key's sources
// are unknown, and nothing is done. A key signs only after the records that came with it are merged, and its records
// are exported only after its last signature.

import type { Log } from '../../../common/observe/log.ts';
import type { Tenures } from '../../tenure.ts';
import type { ImportedKeystore } from '../files/imported-keystore.ts';
import type { DepositNetwork } from '../generation/deposit.ts';
import type { GenerateOptions } from '../generation/generate.ts';
import type { KeystorePool } from '../keystores/pool.ts';
import type { KeyStore } from '../store.ts';
import type { KeyTable, KeyTableLoader } from '../table/types.ts';
import type { KeyTurns } from '../turns.ts';

export type Allows = (publicKey: string) => boolean;

export interface SlashingFiles {
  /** All or nothing. @throws SignerError `malformed_body`, also for another network; `denied` */
  merge(interchange: string, allows: Allows): Promise<void>;
  /** `recorded` are the keys that the file says something about. */
  export(publicKeys: readonly string[]): Promise<{ readonly file: string; readonly recorded: ReadonlySet<string> }>;
  tenures(publicKeys: readonly string[]): Promise<Tenures>;
  /** Every signer of the store refuses these keys from then on; durable when it resolves, with the new numbers. */
  endTenures(publicKeys: readonly string[]): Promise<Tenures>;
  /** Take keys in whose tenure is still the ended one that was read. Resolves with those that are begun. */
  beginTenures(from: Tenures): Promise<Tenures>;
  /** @throws SignerError when this signer has lost its store: what was read of it is no promise any more */
  assertInForce(): void;
}

export interface TableParts {
  readonly rows: KeyTable;
  readonly loader: KeyTableLoader;
}

export interface GenerationOptions extends GenerateOptions {
  readonly network: DepositNetwork;
}

export interface ImportedFiles {
  /** Durable when it resolves, with those keys that had no file before. Does not wipe the passwords. */
  keep(keystores: readonly ImportedKeystore[]): Promise<readonly string[]>;
  /** Durable when it resolves; also of keys that have no file. */
  remove(publicKeys: readonly string[]): Promise<void>;
}

export interface KeyManagementParts {
  readonly store: KeyStore;
  readonly pool: KeystorePool;
  readonly table: TableParts | undefined;
  /** Undefined without `key_sources.memory.persist_dir`: what is imported into memory is gone with this process. */
  readonly imported?: ImportedFiles | undefined;
  readonly slashing: SlashingFiles;
  /** Resolves when none of the keys is signing. */
  readonly drain: (publicKeys: readonly string[]) => Promise<void>;
  readonly turns: KeyTurns;
  readonly log: Log;
}
