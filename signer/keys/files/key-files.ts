// The keys of `key_sources.filesystem`. A bad file never stops the others; a folder that is not there stops everything.
// A later look decrypts only what is new or changed. A key whose file is gone is taken out; one whose file cannot be
// read stays, because a validator must not miss duties for a file that is being written.

import { KeyCache } from './key-cache.ts';
import { type KeyFolders, listKeyFiles } from './listing.ts';
import { type FilesystemLoad, type LoadProgress, LoadReport } from './load-report.ts';
import { HeldPlaces, type KeyFilesParts, Look } from './look.ts';

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
  #held = new HeldPlaces();
  #named: ReadonlySet<string> = new Set();
  #report: LoadReport | undefined;

  constructor(options: KeyFilesOptions, parts: KeyFilesParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Of the look under way. */
  get progress(): LoadProgress | undefined {
    return this.#report?.progress;
  }

  /** @throws Error when a folder cannot be listed, SignerError `sealed`, the signal's reason when stopped */
  async load(): Promise<FilesystemLoad> {
    const look = await this.#look();
    this.#held = look.found;
    this.#named = look.named;
    return look.report.finish({ kept: 0, removed: 0 });
  }

  /**
   * New keys are loaded, then keys whose files are gone are taken out. @throws as load(); then nothing was taken out
   */
  async reload(takeOut: TakeOut): Promise<FilesystemLoad> {
    const { store } = this.#parts;
    const { found, named, kept, report } = await this.#look();
    const gone = this.#held.publicKeys().union(this.#named).difference(found.publicKeys().union(named));
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
    this.#report = report;
    const { cache: cacheFile, rawLoadConcurrency } = this.#options;
    const cache = cacheFile === undefined ? undefined : new KeyCache(cacheFile, this.#parts);
    const look = new Look(this.#held, { ...this.#parts, cache }, report);
    try {
      await look.run(listing, rawLoadConcurrency);
      await cache?.save();
    } finally {
      this.#report = undefined;
      cache?.wipe();
      await this.#parts.pool.endIdleWorkers();
    }
    return { found: look.found, named: look.named, kept: look.kept, report };
  }
}
