// The keys of `key_sources.filesystem`, loaded at the start and read again when somebody asks: raw keys first, because
// they are quick, then keystores, decrypted in worker threads. Every key can sign as soon as it is loaded. A bad file
// is logged and counted and never stops the others; a folder that is not there is a mistake in the configuration and
// stops everything. A later look decrypts only what is new or changed. A key whose file is gone is taken out; one whose
// file is there and cannot be read stays as it is, because a validator must not miss duties for a file that is being
// written.

import { KeyCache } from './key-cache.ts';
import { type KeyFolders, listKeyFiles } from './listing.ts';
import { type FilesystemLoad, LoadReport } from './load-report.ts';
import { type Held, type KeyFilesParts, Look } from './look.ts';

export interface KeyFilesOptions extends KeyFolders {
  /** `key_sources.filesystem.raw_load_concurrency`: descriptor files read at once. */
  readonly rawLoadConcurrency: number;
  /** `key_sources.filesystem.cache`: a file for the keys of keystores (key-cache.ts). */
  readonly cache?: string | undefined;
}

/** Ends the work with the keys before it resolves: none of them signs here any more. */
export type TakeOut = (publicKeys: readonly string[]) => Promise<void>;

export class KeyFiles {
  readonly #options: KeyFilesOptions;
  readonly #parts: KeyFilesParts;
  /** By place. */
  #held: ReadonlyMap<string, Held> = new Map();
  /** Keys that keystores name which could not be opened. */
  #named: ReadonlySet<string> = new Set();

  constructor(options: KeyFilesOptions, parts: KeyFilesParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /**
   * Load every key of the folders into the store.
   * @throws Error when a folder cannot be listed (a startup failure), SignerError `sealed` when the store was sealed
   * meanwhile, the signal's reason when stopped
   */
  async load(): Promise<FilesystemLoad> {
    const look = await this.#look();
    this.#held = look.found;
    this.#named = look.named;
    return look.report.finish({ kept: 0, removed: 0 });
  }

  /**
   * Look again: new keys are loaded, then keys whose files are gone are taken out.
   * @throws as load(); then nothing was taken out
   */
  async reload(takeOut: TakeOut): Promise<FilesystemLoad> {
    const { store } = this.#parts;
    const { found, named, kept, report } = await this.#look();
    const gone = keysOf(this.#held, this.#named).difference(keysOf(found, named));
    const loaded = [...gone].filter((publicKey) => store.find(publicKey)?.source === 'filesystem');
    if (loaded.length > 0) await takeOut(loaded);
    this.#held = found;
    this.#named = named;
    store.forgetFilesOf(gone);
    return report.finish({ kept, removed: loaded.length });
  }

  async #look(): Promise<Pick<Look, 'found' | 'named' | 'kept'> & { readonly report: LoadReport }> {
    const listing = await listKeyFiles(this.#options);
    const report = new LoadReport(this.#parts);
    const { cache: cacheFile, rawLoadConcurrency } = this.#options;
    const cache = cacheFile === undefined ? undefined : new KeyCache(cacheFile, this.#parts);
    const look = new Look(this.#held, { ...this.#parts, cache }, report);
    try {
      await look.run(listing, rawLoadConcurrency);
      await cache?.save();
    } finally {
      cache?.wipe();
      await this.#parts.pool.endIdleWorkers();
    }
    return { found: look.found, named: look.named, kept: look.kept, report };
  }
}

function keysOf(held: ReadonlyMap<string, Held>, named: ReadonlySet<string>): Set<string> {
  return new Set([...held.values()].map(({ publicKey }) => publicKey)).union(named);
}
