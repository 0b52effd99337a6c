// What a program that reads key files hands to the boot. Types alone: a program without key files imports no reader.

import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import type { KeystorePool } from '../keystores/pool.ts';
import type { ImportedFiles } from '../management/management.ts';
import type { KeyStore } from '../store.ts';
import type { TakeOut } from './key-files.ts';
import type { FilesystemLoad, LoadProgress } from './load-report.ts';

interface KeyFileParts {
  readonly store: KeyStore;
  readonly pool: KeystorePool;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface KeptKeystores extends ImportedFiles {
  /** How many files could not be loaded. */
  load(parts: Pick<KeyFileParts, 'store' | 'pool' | 'log'>, signal: AbortSignal): Promise<number>;
  wipe(): void;
}

export interface KeyFileSource {
  keyFiles(parts: KeyFileParts): {
    readonly progress: LoadProgress | undefined;
    load(): Promise<FilesystemLoad>;
    reload(takeOut: TakeOut): Promise<FilesystemLoad>;
  };
  /** Undefined without `key_sources.memory.persist_dir`. */
  readonly imported: KeptKeystores | undefined;
}
